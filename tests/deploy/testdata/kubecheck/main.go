// Command kubecheck decodes Kubernetes manifests into Kubernetes' own types, strictly: a field that does not exist, is there twice or
// has another type is an error. It is a module of its own, so that headgate need not depend on these types.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// kinds are those that deploy/ uses. The operator's own kinds are only parsed.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return &appsv1.Deployment{} },
	"apps/v1 StatefulSet":                     func() any { return &appsv1.StatefulSet{} },
	"v1 Service":                              func() any { return &corev1.Service{} },
	"v1 ConfigMap":                            func() any { return &corev1.ConfigMap{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networkingv1.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policyv1.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &map[string]any{} },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return &map[string]any{} },
}

func main() {
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "kubecheck: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var meta struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return err
		}
		if meta.Kind == "" {
			continue
		}
		of, ok := kinds[meta.APIVersion+" "+meta.Kind]
		if !ok {
			return fmt.Errorf("%s %s is a kind that nobody expects", meta.APIVersion, meta.Kind)
		}
		if err := yaml.UnmarshalStrict(document, of()); err != nil {
			return fmt.Errorf("%s: %w", meta.Kind, err)
		}
		fmt.Fprintf(os.Stdout, "%s: %s %s is right\n", path, meta.APIVersion, meta.Kind)
	}
}
