// The container that holds the namespaces of a pod: it does nothing until it is told to end.
// Stands for build/pause/linux/pause.c of Kubernetes, which needs a C compiler.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
