package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Encode writes objects as a YAML stream, each under a comment that names its file, as Helm writes its
// manifests.
func Encode(objects []Object) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", Name(object), err)
		}
		out.WriteString("---\n")
		if object.Origin.File != "" {
			fmt.Fprintf(&out, "%s%s\n", sourceComment, strings.ReplaceAll(object.Origin.File, "\n", " "))
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// Name returns "Kind namespace/name" for messages.
func Name(object Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return object.GetKind() + " " + namespace + "/" + object.GetName()
	}
	return object.GetKind() + " " + object.GetName()
}

var (
	yamlLine   = regexp.MustCompile(`\bline (\d+)`)
	quotedText = regexp.MustCompile("`[^`]*`")
)

// shiftLine returns the parser's message with the line of the file instead of that of the document, and
// without the text that the parser quotes, since that may be a secret.
func shiftLine(err error, document Document) string {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = quotedText.ReplaceAllString(message, "a value")
	switch {
	case strings.HasPrefix(message, "invalid map key"):
		return "a mapping is used as a key; quote texts that start with a brace (templates are read in charts and in templates/ only)"
	case strings.Contains(message, "character that cannot start any token"):
		message += "; indent with spaces, not tabs, and quote texts that start with a special character"
	}
	first := document.Line - leadingLines(document.Text)
	return yamlLine.ReplaceAllStringFunc(message, func(found string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(found, "line "))
		return "line " + strconv.Itoa(first+line-1)
	})
}

// leadingLines counts the lines before the first that holds content.
func leadingLines(text []byte) int {
	count := 0
	for line := range bytes.Lines(text) {
		if content := bytes.TrimSpace(line); len(content) > 0 && content[0] != '#' {
			break
		}
		count++
	}
	return count
}
