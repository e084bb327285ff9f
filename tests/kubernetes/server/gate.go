package main

import (
	"fmt"
	"net"
)

// gate is a listener on a port of its own, and from `open` on also on that of the cluster: an API server refuses calls
// of users before it has read their roles, and the load balancer of a real cluster knows when it is ready.
type gate struct {
	net.Listener
	accepted chan net.Conn
}

func newGate() (*gate, error) {
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	made := &gate{own, make(chan net.Conn)}
	go made.take(own)
	return made, nil
}

// open admits all clients, and returns the address.
func (g *gate) open(port int) (string, error) {
	public, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", err
	}
	go g.take(public)
	return public.Addr().String(), nil
}

// Accept returns the next connection to any of the ports.
func (g *gate) Accept() (net.Conn, error) {
	return <-g.accepted, nil
}

func (g *gate) take(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		g.accepted <- connection
	}
}
