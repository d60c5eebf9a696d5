package inspect

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

type getFlags struct {
	output        output
	selector      string
	state         string
	allNamespaces bool
	watch         bool

	// chosen is what selects deployments; nil for other kinds.
	chosen labels.Selector
	// shown are the deployments that were printed last.
	shown map[client.ObjectKey]*fleet.BundleDeployment
}

// Get returns `fleet get`.
func Get(s *session.Session) *cobra.Command {
	f := &getFlags{}
	var kinds []string
	for _, r := range resources {
		kinds = append(kinds, r.names[0])
	}
	command := &cobra.Command{
		Use:   "get " + strings.Join(kinds, "|") + " [NAME...]",
		Short: "List objects of the hub with their state",
		Example: `  fleet get repos
  fleet get bundles --state NotReady -A
  fleet get deployments -l fleet.cattle.io/cluster=prod -o wide
  fleet get clusters -o name`,
		ValidArgs: kinds,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return session.Usage("get needs a kind: %s", strings.Join(kinds, ", "))
			}
			if _, err := resourceNamed(args[0]); err != nil {
				return err
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, args)
		},
	}
	set := command.Flags()
	f.output.add(command)
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	set.StringVarP(&f.selector, "selector", "l", "", "label selector")
	set.StringVar(&f.state, "state", "", "only objects in this state, such as NotReady")
	set.BoolVarP(&f.watch, "watch", "w", false, "go on and print what changes")
	return command
}

func (f *getFlags) run(ctx context.Context, s *session.Session, args []string) error {
	kind, err := resourceNamed(args[0])
	if err != nil {
		return err
	}
	printer, err := f.output.printer(s, f.allNamespaces)
	if err != nil {
		return err
	}
	hub, err := s.Client()
	if err != nil {
		return err
	}
	options, namespace, err := f.options(s, kind)
	if err != nil {
		return err
	}
	list := kind.list()
	if err := hub.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list %s: %w", kind.names[0], err)
	}
	f.explode(list)
	objects, missing, err := f.choose(kind, list, args[1:])
	if err != nil {
		return err
	}
	if err := printer.print(kind, objects, len(args) == 2); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s not found in %s: %s", kind.names[0], place(namespace), strings.Join(missing, ", "))
	}
	if f.watch {
		return f.follow(ctx, hub, kind, list, options, args[1:], printer)
	}
	if len(objects) == 0 {
		s.Say("No %s found in %s.", kind.names[0], place(namespace))
	}
	return nil
}

func place(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace + " (-A looks everywhere)"
}

// options returns what to ask the API server for. Deployments live in the namespaces of clusters; those of
// a workspace are found by their label. Of a selector that is asked for which objects with several of them answer to.
func (f *getFlags) options(s *session.Session, kind resource) ([]client.ListOption, string, error) {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, "", session.Usage("--selector: %v", err)
	}
	namespace := ""
	if !f.allNamespaces {
		if namespace, err = s.Workspace(); err != nil {
			return nil, "", err
		}
	}
	options := []client.ListOption{}
	if kind.byBundle {
		f.chosen, selector = selector, common(selector)
	}
	switch {
	case namespace == "":
	case kind.byBundle:
		requirements, _ := labels.SelectorFromSet(labels.Set{fleet.BundleNamespaceLabel: namespace}).Requirements()
		selector = selector.Add(requirements...)
	default:
		options = append(options, client.InNamespace(namespace))
	}
	return append(options, client.MatchingLabelsSelector{Selector: selector}), namespace, nil
}

// common returns the part of a selector that is about labels which a merged object has in common with what it carries.
func common(selector labels.Selector) labels.Selector {
	asked := labels.NewSelector()
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		if slices.Contains([]string{fleet.ClusterLabel, fleet.ClusterNamespaceLabel, fleet.BundleNamespaceLabel, fleet.RepoLabel}, requirement.Key()) {
			asked = asked.Add(requirement)
		}
	}
	return asked
}

// choose returns the objects of a list that are wanted, sorted, and the names that are not there.
func (f *getFlags) choose(kind resource, list runtime.Object, names []string) ([]client.Object, []string, error) {
	all, err := itemsOf(kind, list)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]bool{}
	chosen := slices.DeleteFunc(all, func(object client.Object) bool {
		found[object.GetName()] = true
		return !f.wants(kind, object, names)
	})
	var missing []string
	for _, name := range names {
		if !found[name] {
			missing = append(missing, name)
		}
	}
	slices.SortStableFunc(chosen, func(a, b client.Object) int {
		return strings.Compare(a.GetNamespace()+"\x00"+a.GetName(), b.GetNamespace()+"\x00"+b.GetName())
	})
	return chosen, missing, nil
}

func (f *getFlags) wants(kind resource, object client.Object, names []string) bool {
	if len(names) > 0 && !slices.Contains(names, object.GetName()) {
		return false
	}
	if f.chosen != nil && !f.chosen.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	return f.state == "" || strings.EqualFold(f.state, kind.state(object))
}

// explode puts the deployments that objects carry in the place of the objects, and remembers them.
func (f *getFlags) explode(list client.ObjectList) {
	deployments, ok := list.(*fleet.BundleDeploymentList)
	if !ok {
		return
	}
	deployments.Items = merge.ExplodeAll(deployments.Items)
	f.shown = map[client.ObjectKey]*fleet.BundleDeployment{}
	for i := range deployments.Items {
		f.shown[client.ObjectKeyFromObject(&deployments.Items[i])] = &deployments.Items[i]
	}
}

// changed returns what a change of an object changes: of what it carries, what is not as it was shown.
func (f *getFlags) changed(object client.Object) []client.Object {
	carrier, ok := object.(*fleet.BundleDeployment)
	if !ok || !merge.IsMerged(carrier) {
		return []client.Object{object}
	}
	var changed []client.Object
	for _, deployment := range merge.Explode(carrier) {
		key := client.ObjectKeyFromObject(deployment)
		before := f.shown[key]
		if before == nil || !reflect.DeepEqual(before.Spec, deployment.Spec) || !reflect.DeepEqual(before.Status, deployment.Status) {
			changed = append(changed, deployment)
		}
		f.shown[key] = deployment
	}
	return changed
}

// follow prints changes until the context ends. A watch that the server ends is begun again where it ended.
func (f *getFlags) follow(ctx context.Context, hub client.WithWatch, kind resource, list client.ObjectList, options []client.ListOption, names []string, printer *printer) error {
	version := list.GetResourceVersion()
	printer.headersDone = true
	for ctx.Err() == nil {
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
		watcher, err := hub.Watch(ctx, kind.list(), append(slices.Clone(options), from)...)
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind.names[0], err)
		}
		version, err = f.events(watcher, kind, names, version, printer)
		watcher.Stop()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *getFlags) events(watcher watch.Interface, kind resource, names []string, version string, printer *printer) (string, error) {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return version, fmt.Errorf("watch %s: %w", kind.names[0], statusError(event.Object))
		}
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		version = object.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		for _, object := range f.changed(object) {
			if !f.wants(kind, object, names) {
				continue
			}
			object.GetObjectKind().SetGroupVersionKind(fleet.GroupVersion.WithKind(kind.kind))
			if err := printer.print(kind, []client.Object{object}, true); err != nil {
				return version, err
			}
		}
	}
	return version, nil
}

func statusError(object runtime.Object) error {
	if status, ok := object.(*metav1.Status); ok {
		return errors.New(status.Message)
	}
	return errors.New("the server ended the watch")
}
