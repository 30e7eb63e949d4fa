{{/* Names and labels. */}}

{{- define "hopline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "hopline.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "hopline.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hopline.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The pods of the release: never with a version, selectors can't be changed. */}}
{{- define "hopline.releaseSelector" -}}
app.kubernetes.io/name: {{ include "hopline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The pods of a component. Takes {root, name}. */}}
{{- define "hopline.selector" -}}
{{ include "hopline.releaseSelector" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* Labels of an object that belongs to no component. */}}
{{- define "hopline.releaseLabels" -}}
{{ include "hopline.releaseSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: hopline
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of an object of a component. Takes {root, name}. */}}
{{- define "hopline.labels" -}}
{{ include "hopline.releaseLabels" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "hopline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "hopline.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "hopline.claimName" -}}
{{- default (printf "%s-vault" (include "hopline.fullname" .)) .Values.vault.existingClaim }}
{{- end }}

{{/* Takes {root, cuda}. */}}
{{- define "hopline.image" -}}
{{- $image := .root.Values.image }}
{{- $tag := default .root.Chart.AppVersion $image.tag }}
{{- $name := printf "%s:%s%s" $image.repository $tag (ternary $image.cudaSuffix "" .cuda) }}
{{- if $image.registry }}{{ printf "%s/%s" $image.registry $name }}{{ else }}{{ $name }}{{ end }}
{{- end }}

{{/* The StatefulSets, as YAML. */}}
{{- define "hopline.workers" -}}
[ingest, embed, extract, link{{ if .Values.embed.reindex.enabled }}, embed-reindex{{ end }}]
{{- end }}
