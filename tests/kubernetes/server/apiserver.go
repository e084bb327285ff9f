package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// The settings that differ from a usual cluster's: nothing is reached by services, and no controller makes the
// namespaces' default service accounts that the admission of pods needs.
var usualFlags = []string{
	"--authorization-mode=RBAC",
	"--disable-admission-plugins=ServiceAccount",
	"--endpoint-reconciler-type=none",
	"--service-cluster-ip-range=10.0.0.0/24",
	"--service-account-issuer=https://signalbox.example",
	"--profiling=false",
}

// serve runs the API server as its own command does, on a port that is bound already.
func serve(ctx context.Context, listener net.Listener, flags []string) error {
	settings := options.NewServerRunOptions()
	known := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	groups := settings.Flags()
	for _, group := range groups.FlagSets {
		known.AddFlagSet(group)
	}
	if err := known.Parse(append(flags, usualFlags...)); err != nil {
		return err
	}
	address := listener.Addr().(*net.TCPAddr)
	settings.SecureServing.Listener = listener
	settings.SecureServing.BindPort = address.Port
	settings.SecureServing.ExternalAddress = address.IP
	if err := settings.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := settings.Complete(ctx)
	if err != nil {
		return err
	}
	if problems := completed.Validate(); len(problems) != 0 {
		return fmt.Errorf("invalid settings: %v", problems)
	}
	return app.Run(ctx, completed)
}

// waitUntilReady asks the API server until it is ready; `failed` has the error of one that ended.
func waitUntilReady(ctx context.Context, config *rest.Config, failed <-chan error) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	const interval = 50 * time.Millisecond
	return wait.PollUntilContextTimeout(ctx, interval, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-failed:
			return false, fmt.Errorf("the API server ended: %w", err)
		default:
			return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
		}
	})
}
