package inspect

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/columns"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

const wide = "wide"

// output holds kubectl's output flags.
type output struct {
	format                string
	noHeaders, showLabels bool
	template              string
}

func (o *output) add(command *cobra.Command) {
	set := command.Flags()
	set.StringVarP(&o.format, "output", "o", "", "json, yaml, name, wide, jsonpath=…, go-template=…, custom-columns=… and their -file forms")
	set.BoolVar(&o.noHeaders, "no-headers", false, "leave the headings of tables out")
	set.BoolVar(&o.showLabels, "show-labels", false, "add the labels to tables")
	set.StringVar(&o.template, "template", "", "template for -o go-template or jsonpath")
}

// printer prints objects in one format.
type printer struct {
	session       *session.Session
	output        *output
	withNamespace bool
	// objects prints API objects; nil prints tables.
	objects     printers.ResourcePrinter
	headersDone bool
}

func (o *output) printer(s *session.Session, withNamespace bool) (*printer, error) {
	p := &printer{session: s, output: o, withNamespace: withNamespace}
	if o.format == "" || o.format == wide {
		return p, nil
	}
	jsonYAML := genericclioptions.NewJSONYamlPrintFlags()
	templates := genericclioptions.NewKubeTemplatePrintFlags()
	templates.TemplateArgument = &o.template
	if chosen, known, err := columns.Parse(o.format, o.template, o.noHeaders); known {
		if err != nil {
			return nil, session.Usage("--output %s: %v", o.format, err)
		}
		p.objects = chosen
		return p, nil
	}
	for _, flags := range []interface {
		ToPrinter(format string) (printers.ResourcePrinter, error)
	}{jsonYAML, templates} {
		made, err := flags.ToPrinter(o.format)
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			continue
		}
		if err != nil {
			return nil, session.Usage("--output %s: %v", o.format, err)
		}
		p.objects = made
		return p, nil
	}
	if o.format == "name" {
		p.objects = &printers.NamePrinter{}
		return p, nil
	}
	return nil, session.Usage("--output %q is none of json, yaml, name, wide, jsonpath, go-template and custom-columns", o.format)
}

// print prints objects; a single one that was asked for by its name is not put into a list.
func (p *printer) print(kind resource, objects []client.Object, single bool) error {
	if p.objects == nil {
		return p.table(kind, objects)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("print %s: %w", object.GetName(), err)
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: content})
	}
	if single && len(list.Items) == 1 {
		return p.objects.PrintObj(&list.Items[0], p.session.Out)
	}
	return p.objects.PrintObj(list, p.session.Out)
}

func (p *printer) table(kind resource, objects []client.Object) error {
	if len(objects) == 0 {
		return nil
	}
	isWide := p.output.format == wide
	table := &metav1.Table{}
	for _, column := range kind.columns {
		priority := int32(0)
		if column.wide {
			priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: column.name, Type: "string", Priority: priority})
	}
	now := p.session.Now()
	for _, object := range objects {
		row := metav1.TableRow{Object: runtime.RawExtension{Object: object}}
		for _, column := range kind.columns {
			text := column.value(object, now)
			if column.name == messageColumn && !isWide {
				text = shorten(text)
			}
			row.Cells = append(row.Cells, text)
		}
		table.Rows = append(table.Rows, row)
	}
	out := printers.GetNewTabWriter(p.session.Out)
	err := printers.NewTablePrinter(printers.PrintOptions{
		NoHeaders: p.output.noHeaders || p.headersDone, Wide: isWide, WithNamespace: p.withNamespace, ShowLabels: p.output.showLabels,
	}).PrintObj(table, out)
	if err != nil {
		return err
	}
	return out.Flush()
}

// maxMessage is how much of a message a table shows.
const maxMessage = 80

func shorten(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return text
}

// itemsOf returns the objects of a list with their kind set and without what only servers need.
func itemsOf(kind resource, list runtime.Object) ([]client.Object, error) {
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("list %s: unexpected %T", kind.names[0], item)
		}
		object.GetObjectKind().SetGroupVersionKind(fleet.GroupVersion.WithKind(kind.kind))
		object.SetManagedFields(nil)
		objects = append(objects, object)
		return nil
	})
	return objects, err
}
