// Package charts holds the flags that say how commands fetch charts, and with which credentials. User name
// and password go nowhere unless --helm-repo-url-regex says where.
//
// It fetches nothing itself (package fetch does). Start reading with Flags.
package charts
