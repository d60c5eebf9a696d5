package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Schedule lets deployments reach its clusters only inside a window.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=schedules
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="NextStart",type=string,JSONPath=`.status.nextStartTime`
type Schedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ScheduleSpec   `json:"spec,omitempty"`
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleList is a list of Schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Schedule `json:"items"`
}

// ScheduleSpec is a window and the clusters it holds for.
type ScheduleSpec struct {
	// Schedule is a cron expression of six fields, seconds first.
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// Duration of the window.
	// +optional
	Duration Duration `json:"duration,omitempty,omitzero"`
	// Location is an IANA time zone.
	// +optional
	Location string `json:"location,omitempty"`
	// +optional
	Targets ScheduleTargets `json:"targets,omitempty"`
}

// ScheduleTargets select clusters of the namespace.
type ScheduleTargets struct {
	// +optional
	Clusters []ClusterTarget `json:"clusters,omitempty"`
}

// ScheduleStatus says whether the window is open.
type ScheduleStatus struct {
	// +optional
	Active bool `json:"active,omitempty"`
	// +optional
	NextStartTime metav1.Time `json:"nextStartTime,omitempty,omitzero"`
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	MatchingClusters []string `json:"matchingClusters,omitempty"`
}
