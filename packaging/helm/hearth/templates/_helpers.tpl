{{- /* Flow style and toJson throughout: indentation is never computed. */ -}}
{{- define "hearth.selector" -}}
app.kubernetes.io/name: hearth, app.kubernetes.io/instance: {{ toJson .Release.Name }}
{{- end -}}

{{- define "hearth.labels" -}}
{{ template "hearth.selector" . }}, app.kubernetes.io/version: {{ toJson .Chart.AppVersion }}, app.kubernetes.io/managed-by: {{ toJson .Release.Service }}
{{- end -}}

{{- define "hearth.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | toJson }}
          imagePullPolicy: {{ toJson .Values.image.pullPolicy }}
{{- end -}}

{{- define "hearth.more" -}}
{{ range $name, $value := . }}, {{ toJson $name }}: {{ toJson $value }}{{ end }}
{{- end -}}

{{- define "hearth.placement" -}}
nodeSelector: {{ toJson .nodeSelector }}
      tolerations: {{ toJson .tolerations }}
      affinity: {{ toJson .affinity }}
      topologySpreadConstraints: {{ toJson .topologySpreadConstraints }}
      # longer than drain delay, grace and last words together
      terminationGracePeriodSeconds: {{ toJson .terminationGracePeriodSeconds }}
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "hearth.container" -}}
startupProbe:
            httpGet: { path: /startupz, port: http }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /livez, port: http }
            timeoutSeconds: 5
          readinessProbe:
            httpGet: { path: /readyz, port: http }
            periodSeconds: 2
            timeoutSeconds: 5
            failureThreshold: 1
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
{{- end -}}

{{- /* Names in the cluster, behind that of a service: each namespace's, and those of single pods. */ -}}
{{- define "hearth.hosts" -}}
.{{ .Release.Namespace }},*.svc,*.svc.cluster.local{{ range .Values.hosts }},{{ . }}{{ end }}
{{- end -}}

{{- define "hearth.env" -}}
- { name: HEARTH_HOST, value: "0.0.0.0:11434" }
            - { name: HEARTH_HOME, value: /data }
            - { name: HEARTH_MODELS, value: /data/models }
            - { name: HOME, value: /data }
            - { name: HEARTH_DRAIN_DELAY, value: {{ toJson .drainDelay }} }
            - { name: HEARTH_SHUTDOWN_GRACE, value: {{ toJson .shutdownGrace }} }
            {{- range .env }}
            - {{ toJson . }}
            {{- end }}
{{- end -}}
