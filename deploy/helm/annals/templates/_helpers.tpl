{{- define "annals.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "annals.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "annals.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "annals.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of one component: (dict "root" $ "component" "storage"). */}}
{{- define "annals.selectorLabels" -}}
app.kubernetes.io/name: {{ include "annals.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "annals.labels" -}}
{{ include "annals.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "annals.meta" -}}
name: {{ include "annals.fullname" .root }}-{{ .suffix | default .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "annals.labels" . | nindent 2 }}
{{- end -}}

{{/* The image of a component: (dict "root" $ "image" .Values.storage.image). A digest wins. */}}
{{- define "annals.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* "true" unless it is a component that is switched off: (dict "root" $ "component" …). */}}
{{- define "annals.isOn" -}}
{{- dig "enabled" true (index .root.Values .component) -}}
{{- end -}}

{{- define "annals.storageHost" -}}
{{ include "annals.fullname" . }}-storage.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{- define "annals.contextHost" -}}
{{ include "annals.fullname" . }}-context.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* Secrets: those that exist, or those the chart makes for evaluation. */}}
{{- define "annals.databaseSecret" -}}
{{- if .Values.evaluation.postgresql.enabled -}}
{{ include "annals.fullname" . }}-evaluation-postgresql
{{- else -}}
{{ .Values.database.existingSecret }}
{{- end -}}
{{- end -}}

{{- define "annals.ownerSecret" -}}
{{- if .Values.evaluation.postgresql.enabled -}}
{{ include "annals.fullname" . }}-evaluation-postgresql-owner
{{- else -}}
{{ .Values.database.ownerSecret | default .Values.database.existingSecret }}
{{- end -}}
{{- end -}}

{{- define "annals.qdrantUrl" -}}
{{- if .Values.evaluation.qdrant.enabled -}}
http://{{ include "annals.fullname" . }}-evaluation-qdrant:6333
{{- else -}}
{{ .Values.vectors.qdrantUrl }}
{{- end -}}
{{- end -}}

{{/* The secret with the certificate of a component: (dict "root" $ "component" "storage"). */}}
{{- define "annals.tlsSecret" -}}
{{- if eq .root.Values.tls.mode "certManager" -}}
{{ include "annals.fullname" .root }}-{{ .component }}-tls
{{- else -}}
{{ index .root.Values.tls (printf "%sSecret" .component) }}
{{- end -}}
{{- end -}}

{{/* What pods must notice of secrets that exist; unknown where there is no cluster to ask. */}}
{{- define "annals.secretsChecksum" -}}
{{- $root := .root -}}
{{- $seen := list -}}
{{- range .names -}}
{{- if . -}}
{{- $seen = append $seen (get (lookup "v1" "Secret" $root.Release.Namespace . | default dict) "data") -}}
{{- end -}}
{{- end -}}
{{ toJson $seen | sha256sum }}
{{- end -}}

{{- define "annals.hookAnnotations" -}}
helm.sh/hook: {{ .hook }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
