{{- define "headgate.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* Not empty if the port without TLS is open. */ -}}
{{- define "headgate.plain" -}}
{{- if or (not .Values.tls.enabled) .Values.tls.plaintext -}}yes{{- end -}}
{{- end -}}

{{- /* The container's variables: what values say, and passwords. They win over headgate.conf, so "headgate.check" refuses what would be set twice. */ -}}
{{- define "headgate.env" -}}
- name: HEADGATE_BIND
  value: {{ .Values.bind | quote }}
- name: HEADGATE_PORT
  value: {{ ternary "6379" "0" (eq (include "headgate.plain" .) "yes") | quote }}
{{- if .Values.tls.enabled }}
- name: HEADGATE_TLS_PORT
  value: {{ .Values.tls.port | quote }}
- name: HEADGATE_TLS_CERT_FILE
  value: /tls/tls.crt
- name: HEADGATE_TLS_KEY_FILE
  value: /tls/tls.key
- name: HEADGATE_TLS_AUTH_CLIENTS
  value: {{ .Values.tls.authClients | quote }}
{{- if ne .Values.tls.authClients "no" }}
- name: HEADGATE_TLS_CA_CERT_FILE
  value: /tls/ca.crt
{{- end }}
{{- end }}
{{- with .Values.existingSecret }}
- name: HEADGATE_REQUIREPASS
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: password
- name: HEADGATE_METRICS_PAGE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: metrics-page-password
      optional: true
{{- end }}
- name: HEADGATE_METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
- name: HEADGATE_METRICS_BIND
  value: "* -::*"
{{- with .Values.metrics.existingSecret }}
- name: HEADGATE_METRICS_USER
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: metrics-user
- name: HEADGATE_METRICS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: metrics-password
{{- end }}
{{- if .Values.upstream.url }}
- name: HEADGATE_UPSTREAM
  value: {{ .Values.upstream.url | quote }}
- name: HEADGATE_UPSTREAM_FAILURE
  value: {{ .Values.upstream.failure | quote }}
{{- with .Values.upstream.existingSecret }}
- name: HEADGATE_UPSTREAM_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: upstream-password
{{- end }}
{{- end }}
- name: HEADGATE_SAVE
  value: {{ ternary .Values.persistence.save "" .Values.persistence.enabled | quote }}
{{- if .Values.persistence.enabled }}
- name: HEADGATE_DIR
  value: /data
- name: HEADGATE_APPENDONLY
  value: {{ ternary "yes" "no" .Values.persistence.appendonly | quote }}
- name: HEADGATE_APPENDFSYNC
  value: {{ .Values.persistence.appendfsync | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Fails if config sets what a variable of the container would overrule. */ -}}
{{- define "headgate.check" -}}
{{- range include "headgate.env" . | fromYamlArray }}
{{- if hasPrefix "HEADGATE_" .name }}
{{- $directive := trimPrefix "HEADGATE_" .name | lower | replace "_" "-" }}
{{- if regexMatch (printf `(?im)^[ \t]*["']?%s["']?[ \t]` $directive) $.Values.config }}
{{- fail (printf "config sets %s, which the container's variable %s would overrule: set it by the chart's values or by extraEnv" $directive .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
