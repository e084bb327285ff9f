package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

const (
	workers     = 2
	burst       = 100              // the pods that a replica set makes at once
	syncPeriod  = 10 * time.Second // of the garbage collector's list of resources
	resyncEvery = 10 * time.Minute
)

// startControllers runs the controllers that make and delete pods, as the controller manager does.
func startControllers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, resyncEvery)
	apps, core := shared.Apps().V1(), shared.Core().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return err
	}
	replicas := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, burst)
	stateful := statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client,
	)
	startKubelet(ctx, client, core.Pods().Informer())
	if err := startDeleters(ctx, config, client, shared); err != nil {
		return err
	}
	go deployments.Run(ctx, workers)
	go replicas.Run(ctx, workers)
	go stateful.Run(ctx, workers)
	return nil
}

// startDeleters runs the controllers that delete what is in a namespace, and what belongs to a deleted object.
func startDeleters(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, shared informers.SharedInformerFactory,
) error {
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(
		ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), resyncEvery, corev1.FinalizerKubernetes,
	)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	all := informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(objects, resyncEvery))
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(
		ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), all, started,
	)
	if err != nil {
		return err
	}
	all.Start(ctx.Done())
	close(started)
	go namespaces.Run(ctx, workers)
	go collector.Run(ctx, workers, syncPeriod)
	go collector.Sync(ctx, client.Discovery(), syncPeriod)
	return nil
}
