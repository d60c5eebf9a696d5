// Package inspect looks at a hub: `fleet get` lists objects, `fleet status` shows what is wrong where,
// `fleet why` leads to the first cause, `fleet version` says which versions work together. It changes nothing.
//
// States and causes are computed by packages status and cause. Output formats are kubectl's; reports that
// are no API objects have a version of their own (report.Version).
//
// Start reading with Get and Status.
package inspect
