// Package credential turns the Secrets that Fleet's users write into what a git server is shown.
//
// It is pure. It refuses Secrets that hold no usable credential, naming the keys it looked for and
// never a value. Start reading at FromSecret.
package credential
