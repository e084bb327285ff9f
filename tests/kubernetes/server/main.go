// Command server is a Kubernetes cluster for tests: etcd, the real API server, the real controllers of workloads, and
// a stand-in for the kubelet. It serves on 127.0.0.1 until its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/rest"
)

const startTimeout = 10 * time.Minute // 3 to 5 s on an idle machine, minutes on one with much else to do

func main() {
	folder := flag.String("folder", "", "the folder of the keys and of etcd's data; a second start finds them there")
	port := flag.Int("port", 0, "the port of the API server; 0 is a free one")
	reviews := flag.String("token-reviews", "", "the URL of a TokenReview webhook, asked about unknown tokens")
	flag.Parse()
	go exitWithParent()
	if err := run(*folder, *port, *reviews); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// exitWithParent ends this process when the standard input ends: the parent has closed it or was killed.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// run prints the endpoint, the CA's certificate and the administrator's token as JSON when the cluster is ready.
func run(folder string, port int, reviews string) error {
	etcd, err := startEtcd(filepath.Join(folder, "etcd"))
	if err != nil {
		return err
	}
	gate, err := newGate()
	if err != nil {
		return err
	}
	files, err := writeFiles(folder, reviews)
	if err != nil {
		return err
	}
	ctx := context.Background()
	failed := make(chan error, 1)
	go func() { failed <- serve(ctx, gate, append(files.flags, etcdFlag(etcd))) }()
	client := &rest.Config{
		Host:            "https://" + gate.Addr().String(),
		BearerToken:     files.adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: files.ca},
		QPS:             -1, // without a limit
	}
	if err := waitUntilReady(ctx, client, failed); err != nil {
		return err
	}
	if err := startControllers(ctx, client); err != nil {
		return err
	}
	address, err := gate.open(port)
	if err != nil {
		return err
	}
	ready := map[string]string{"endpoint": "https://" + address, "ca": string(files.ca), "token": files.adminToken}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return <-failed
}

func startEtcd(folder string) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	settings := embed.NewConfig()
	settings.Dir = folder
	settings.LogLevel = "error"
	settings.EnableGRPCGateway = false // it would dial the port 0
	settings.UnsafeNoFsync = true      // the data need not outlive the machine
	settings.ListenClientUrls, settings.AdvertiseClientUrls = anyPort, anyPort
	settings.ListenPeerUrls, settings.AdvertisePeerUrls = anyPort, anyPort
	settings.InitialCluster = settings.InitialClusterFromName(settings.Name)
	etcd, err := embed.StartEtcd(settings)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, err
	case <-time.After(startTimeout):
		return nil, fmt.Errorf("etcd was not ready after %s", startTimeout)
	}
}

func etcdFlag(etcd *embed.Etcd) string {
	return "--etcd-servers=http://" + etcd.Clients[0].Addr().String()
}
