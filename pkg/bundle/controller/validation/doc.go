// Package validation finds out, before bundles are sent, whether they render. It renders in the background,
// once for each different set of content, options and version of Kubernetes, with the code that agents use,
// and remembers verdicts, never objects.
//
// It never holds a bundle back on doubt. What fails may still render on the cluster itself when the outcome
// depends on what only the cluster knows: values from its ConfigMaps and Secrets, lookup, the kinds it serves,
// addresses, whether the release is there already, and its version where its agent reports none. Such bundles
// are let through, and so are those that take too long or too much, and those for which nobody answered in
// time. The agent tells.
//
// It reads a bundle's files through its user and writes nothing. Its user renders, too: packages judge and
// apart. Start reading with Validator.Ask.
package validation
