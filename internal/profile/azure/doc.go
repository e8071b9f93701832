// Package azure is the Azure CNI in its transparent mode: the network of Azure delivers packets to pods.
package azure
