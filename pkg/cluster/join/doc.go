// Package join decides how agents join a hub: what a registration token is and when it ends, whether a
// registration may be granted and for which Cluster, which certificate an agent may have, and which
// objects carry the rights on the way.
//
// It takes values and returns values. It refuses more than it grants: whatever a registration says, it
// yields the identity of one Cluster, and none that belongs to another client. Refusals are errors of
// class fault.Denied whose reason and message are meant for the person who installs the agent.
//
// Start reading at CheckToken, CheckOwner and CheckCSR; objects are made by IdentityOf (token), Answer,
// SigningRequest and, for agents without certificates, AccountFor.
package join
