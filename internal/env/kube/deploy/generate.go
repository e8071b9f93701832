package deploy

//go:generate go run ../../../tool/deploy ../../../../deploy
