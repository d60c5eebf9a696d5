// Package sight is what the agent sees of the objects of its bundles on the member: how each compares with what is
// wanted, whether it is ready, and why its pods do not run.
//
// It works from watches (packages live and spot), and from what the API server answered to our own writes while a watch
// lags behind; it asks the API server only for what a watch lacks. It sees as the bundle's identity: an object of
// another bundle is shown to nobody who may not read it. It writes nothing and corrects nothing. What cannot be seen is
// Unknown or pending, never missing.
//
// Start reading with View.Look.
package sight
