// Package aws is the AWS VPC CNI: pods have addresses of the VPC, and the VPC delivers their packets.
package aws
