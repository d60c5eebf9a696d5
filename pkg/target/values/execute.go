package values

import (
	"bytes"
	"errors"
	"fmt"
	"text/template"
	"text/template/parse"
)

const (
	// stepFunction is called at the start of every repetition and of every template, so that a template
	// without output ends too.
	stepFunction = "fleetStep__"
	// printFunction is called on everything that is printed, so that nothing too large is.
	printFunction = "fleetPrint__"
)

var errTooLong = fmt.Errorf("the output is longer than %d bytes", maxText)

// engine compiles and executes templates, all with one set of functions. It is used by one goroutine.
type engine struct {
	budget *budget
	funcs  template.FuncMap
}

func newEngine() *engine {
	b := &budget{}
	return &engine{budget: b, funcs: functions(b)}
}

// compile parses text with the delimiters ${ and }.
func (e *engine) compile(text string) (*template.Template, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the template is longer than %d bytes", maxText)
	}
	parsed, err := template.New("value").Delims("${", "}").Option("missingkey=error").Funcs(e.funcs).Parse(text)
	if err != nil {
		return nil, err
	}
	guards, err := template.New("guards").Funcs(e.funcs).Parse("{{" + stepFunction + "}}{{ . | " + printFunction + "}}")
	if err != nil {
		return nil, err
	}
	nodes := guards.Root.Nodes
	guard := guard{step: nodes[0], print: nodes[1].(*parse.ActionNode).Pipe.Cmds[1]}
	for _, t := range parsed.Templates() {
		if t.Tree != nil {
			guard.list(t.Root)
		}
	}
	return parsed, nil
}

// guard puts calls of the budget into a template.
type guard struct {
	step  parse.Node
	print *parse.CommandNode
}

// list guards a list of nodes: a step at its start and the start of every list in it, and everything that is
// printed.
func (g guard) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, g.print)
			}
		case *parse.RangeNode:
			g.list(node.List)
			g.list(node.ElseList)
		case *parse.IfNode:
			g.list(node.List)
			g.list(node.ElseList)
		case *parse.WithNode:
			g.list(node.List)
			g.list(node.ElseList)
		}
	}
	list.Nodes = append([]parse.Node{g.step}, list.Nodes...)
}

// execute returns the output of a compiled template for data.
func (e *engine) execute(parsed *template.Template, data any) (string, error) {
	e.budget.steps = maxSteps
	var out limited
	if err := parsed.Execute(&out, data); err != nil {
		if errors.Is(err, errTooLong) {
			return "", errTooLong
		}
		return "", err
	}
	return out.String(), nil
}

// limited is a buffer that refuses to grow beyond maxText.
type limited struct{ bytes.Buffer }

func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > maxText {
		return 0, errTooLong
	}
	return l.Buffer.Write(data)
}
