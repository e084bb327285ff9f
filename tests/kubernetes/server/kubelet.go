package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// The annotations of a pod that tests set, also later; without them a pod is ready and gone at once.
const (
	readyAnnotation = "kubelet.signalbox.example/ready" // "false": the pod runs and is not ready
	stayAnnotation  = "kubelet.signalbox.example/stay"  // a duration for which a deleted pod terminates, such as "2s", or "true"
	node            = "node"
)

// startKubelet does what the scheduler and the kubelets do that a client of the API sees, without containers.
func startKubelet(ctx context.Context, client kubernetes.Interface, pods cache.SharedIndexInformer) {
	observe := func(object any) {
		pod, isPod := object.(*corev1.Pod)
		if !isPod {
			return
		}
		go func() {
			// Another change of the pod is observed again, and so is the end of one.
			if err := advance(ctx, client, pod); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				klog.ErrorS(err, "Kubelet", "pod", klog.KObj(pod))
			}
		}()
	}
	_, _ = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, changed any) { observe(changed) },
	})
}

// advance takes the next step in the life of a pod: a node, a status, the end.
func advance(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		return terminate(ctx, client, pod)
	case pod.Spec.NodeName == "":
		// An unscheduled pod would be deleted without a time in which it terminates.
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
	case pod.Status.Phase == corev1.PodPending || isReady(pod) != wantsReady(pod):
		changed := pod.DeepCopy()
		setStatus(changed)
		_, err := pods.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		return err
	}
	return nil
}

func terminate(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	stay := pod.Annotations[stayAnnotation]
	if stay == "true" {
		return nil
	}
	if duration, err := time.ParseDuration(stay); err == nil {
		time.Sleep(duration)
	}
	atOnce := metav1.NewPreconditionDeleteOptions(string(pod.UID))
	atOnce.GracePeriodSeconds = new(int64)
	return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *atOnce)
}

func wantsReady(pod *corev1.Pod) bool {
	return pod.Annotations[readyAnnotation] != "false"
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func setStatus(pod *corev1.Pod) {
	now := metav1.Now()
	ready := wantsReady(pod)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &now
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: status, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: status, LastTransitionTime: now},
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: ready, Started: &ready,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}
