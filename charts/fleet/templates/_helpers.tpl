{{/* The image of a program, behind the default registry where one is set. */}}
{{- define "fleet.image" -}}
{{- with .root.Values.global.cattle.systemDefaultRegistry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "fleet.labels" -}}
app.kubernetes.io/name: fleet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Environment of a process that reaches out through a proxy. */}}
{{- define "fleet.proxy" -}}
{{- if .Values.proxy }}
- name: HTTP_PROXY
  value: {{ .Values.proxy | quote }}
- name: HTTPS_PROXY
  value: {{ .Values.proxy | quote }}
- name: NO_PROXY
  value: {{ .Values.noProxy | quote }}
{{- end }}
{{- end }}

{{/* The namespace for credentials of upstream's agents: every -system becomes -clusters-system. */}}
{{- define "fleet.registrationNamespace" -}}
{{- if contains "-system" .Release.Namespace -}}
{{ replace "-system" "-clusters-system" .Release.Namespace }}
{{- else -}}
{{ .Release.Namespace }}-clusters-system
{{- end -}}
{{- end }}

{{/* The label that tells the pods of shards apart. */}}
{{- define "fleet.shardLabel" -}}
{{- if . -}}
fleet.cattle.io/shard-id: {{ . | quote }}
{{- else -}}
fleet.cattle.io/shard-default: "true"
{{- end -}}
{{- end }}
