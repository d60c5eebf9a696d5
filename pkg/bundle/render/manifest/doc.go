// Package manifest takes files of YAML or JSON apart into Kubernetes objects and writes objects back as
// a stream. Every object remembers the file, the document and the line it came from, so that whoever
// finds something wrong with it can say where to look.
//
// It refuses what cannot be an object: a document without apiVersion or kind is an error that names
// file, document and line, because leaving it out in silence would delete the object it once was. Empty
// documents and documents of nothing but comments are fine. Messages never repeat a document's text.
//
// Start reading with Parse and Encode.
package manifest
