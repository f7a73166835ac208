// Makes test/template/golden/go.json: what Go's own text/template makes of go/*.gotmpl for every conversation in
// conversations.json, and of every line of expressions.json. Run by hand, with any Go from 1.18 on; the tests need only its output:
//
//	cd test/template/golden && GO111MODULE=off go run make.go
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"text/template/parse"
)

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type Arguments map[string]any

func (a Arguments) String() string { return text(a) }

type Call struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int       `json:"index"`
		Name      string    `json:"name"`
		Arguments Arguments `json:"arguments"`
	} `json:"function"`
}

type Message struct {
	Role       string   `json:"role"`
	Content    string   `json:"content"`
	Thinking   string   `json:"thinking,omitempty"`
	Images     [][]byte `json:"-"`
	ToolCalls  []Call   `json:"tool_calls,omitempty"`
	ToolName   string   `json:"tool_name,omitempty"`
	ToolCallID string   `json:"tool_call_id,omitempty"`
}

// Types is one name of a type, or a list of them.
type Types []string

func (t *Types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = Types{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

func (t Types) String() string {
	if len(t) == 1 {
		return t[0]
	}
	return fmt.Sprint([]string(t))
}

type Property struct {
	AnyOf       []Property `json:"anyOf,omitempty"`
	Type        Types      `json:"type,omitempty"`
	Items       any        `json:"items,omitempty"`
	Description string     `json:"description,omitempty"`
	Enum        []any      `json:"enum,omitempty"`
	Properties  Properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
}

type Properties map[string]Property

func (p Properties) String() string { return text(p) }

type Parameters struct {
	Type       string     `json:"type"`
	Defs       any        `json:"$defs,omitempty"`
	Items      any        `json:"items,omitempty"`
	Required   []string   `json:"required,omitempty"`
	Properties Properties `json:"properties"`
}

func (p Parameters) String() string { return text(p) }

type Function struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Parameters  Parameters `json:"parameters"`
}

func (f Function) String() string { return text(f) }

type Tool struct {
	Type     string   `json:"type"`
	Items    any      `json:"items,omitempty"`
	Function Function `json:"function"`
}

func (t Tool) String() string { return text(t) }

type Tools []Tool

func (t Tools) String() string { return text(t) }

type Conversation struct {
	Name     string    `json:"name"`
	Messages []Message `json:"messages"`
	Tools    Tools     `json:"tools"`
	Think    *bool     `json:"think"`
	Prompt   string    `json:"prompt"`
	Suffix   string    `json:"suffix"`
}

func typeScript(p Property) string {
	names := map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
		"array": "any[]", "object": "Record<string, any>", "null": "null"}
	var parts []string
	for _, one := range p.AnyOf {
		parts = append(parts, typeScript(one))
	}
	if len(parts) == 0 {
		for _, t := range p.Type {
			name, ok := names[t]
			if !ok {
				name = "any"
			}
			parts = append(parts, name)
		}
	}
	if len(parts) == 0 {
		return "any"
	}
	return strings.Join(parts, " | ")
}

func newTemplate() *template.Template {
	return template.New("").Option("missingkey=zero").Funcs(template.FuncMap{
		"json":             text,
		"currentDate":      func(...string) string { return "2026-11-21" },
		"yesterdayDate":    func(...string) string { return "2026-11-20" },
		"toTypeScriptType": typeScript,
	})
}

// walk calls visit for every node until it returns true.
func walk(n parse.Node, visit func(parse.Node) bool) bool {
	if visit(n) {
		return true
	}
	list := func(l *parse.ListNode) bool {
		if l == nil {
			return false
		}
		for _, c := range l.Nodes {
			if walk(c, visit) {
				return true
			}
		}
		return false
	}
	switch t := n.(type) {
	case *parse.ListNode:
		return list(t)
	case *parse.IfNode:
		return walk(t.Pipe, visit) || list(t.List) || list(t.ElseList)
	case *parse.WithNode:
		return walk(t.Pipe, visit) || list(t.List) || list(t.ElseList)
	case *parse.RangeNode:
		return walk(t.Pipe, visit) || list(t.List) || list(t.ElseList)
	case *parse.ActionNode:
		return walk(t.Pipe, visit)
	case *parse.TemplateNode:
		return t.Pipe != nil && walk(t.Pipe, visit)
	case *parse.PipeNode:
		for _, c := range t.Cmds {
			for _, a := range c.Args {
				if walk(a, visit) {
					return true
				}
			}
		}
	}
	return false
}

func mentions(n parse.Node, name string) bool {
	return walk(n, func(n parse.Node) bool {
		field, ok := n.(*parse.FieldNode)
		if !ok {
			return false
		}
		for _, ident := range field.Ident {
			if strings.EqualFold(ident, name) {
				return true
			}
		}
		return false
	})
}

// cut drops everything behind the first action that prints .Response.
func cut(list *parse.ListNode) bool {
	for i, n := range list.Nodes {
		done := false
		switch t := n.(type) {
		case *parse.ActionNode:
			done = mentions(t, "response")
		case *parse.IfNode:
			done = cut(t.List)
			if t.ElseList != nil {
				done = cut(t.ElseList) || done
			}
		}
		if done {
			list.Nodes = list.Nodes[:i+1]
			return true
		}
	}
	return false
}

func chat(source string, c Conversation) (string, error) {
	t, err := newTemplate().Parse(source)
	if err != nil {
		return "", err
	}
	if !mentions(t.Root, "messages") && !mentions(t.Root, "response") {
		extra, _ := newTemplate().Parse("{{ .Response }}")
		t.Root.Nodes = append(t.Root.Nodes, extra.Root.Nodes...)
	}
	think := c.Think != nil && *c.Think
	level := ""
	if think {
		level = "medium"
	}
	values := func(more map[string]any) map[string]any {
		more["Think"], more["ThinkLevel"], more["IsThinkSet"] = think, level, c.Think != nil
		return more
	}
	var b bytes.Buffer
	if c.Prompt != "" && c.Suffix != "" {
		err := t.Execute(&b, values(map[string]any{"Prompt": c.Prompt, "Suffix": c.Suffix, "Response": ""}))
		return b.String(), err
	}
	var systems []string
	var merged []*Message
	for i := range c.Messages {
		m := c.Messages[i]
		if m.Role == "system" {
			systems = append(systems, m.Content)
		}
		if n := len(merged); n > 0 && merged[n-1].Role == m.Role && m.Role != "tool" {
			merged[n-1].Content += "\n\n" + m.Content
		} else {
			merged = append(merged, &m)
		}
	}
	if mentions(t.Root, "messages") {
		err := t.Execute(&b, values(map[string]any{"System": strings.Join(systems, "\n\n"), "Messages": merged,
			"Tools": c.Tools, "Response": ""}))
		return b.String(), err
	}
	var system, prompt, response string
	turn := func() error {
		err := t.Execute(&b, values(map[string]any{"System": system, "Prompt": prompt, "Response": response}))
		system, prompt, response = "", "", ""
		return err
	}
	for _, m := range merged {
		switch m.Role {
		case "system":
			if prompt != "" || response != "" {
				if err := turn(); err != nil {
					return "", err
				}
			}
			system = m.Content
		case "user":
			if response != "" {
				if err := turn(); err != nil {
					return "", err
				}
			}
			prompt = m.Content
		case "assistant":
			response = m.Content
		}
	}
	cut(t.Root)
	err = turn()
	return b.String(), err
}

// Result has a text, or is an error.
type Result struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

func result(text string, err error) Result {
	if err != nil {
		return Result{Error: err.Error()}
	}
	return Result{Text: text}
}

func read(path string, into any) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		panic(err)
	}
}

func main() {
	var conversations []Conversation
	read("conversations.json", &conversations)
	chats := map[string]map[string]Result{}
	paths, _ := filepath.Glob("go/*.gotmpl")
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".gotmpl")
		chats[name] = map[string]Result{}
		for _, c := range conversations {
			chats[name][c.Name] = result(chat(string(source), c))
		}
	}
	var expressions struct {
		Values    any      `json:"values"`
		Templates []string `json:"templates"`
	}
	read("expressions.json", &expressions)
	lines := map[string]Result{}
	for _, source := range expressions.Templates {
		t, err := newTemplate().Parse(source)
		var b bytes.Buffer
		if err == nil {
			err = t.Execute(&b, expressions.Values)
		}
		lines[source] = result(b.String(), err)
	}
	out := map[string]any{"go": runtime.Version(), "chats": chats, "expressions": lines}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		panic(err)
	}
	if err := os.WriteFile("go.json", b.Bytes(), 0o644); err != nil {
		panic(err)
	}
}
