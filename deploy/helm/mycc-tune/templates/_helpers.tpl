{{- /* Names, labels and parts that several manifests have. */ -}}

{{- define "mycc-tune.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mycc-tune.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "mycc-tune.labels" -}}
{{ include "mycc-tune.selector" . }}
app.kubernetes.io/part-of: mycc
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "mycc-tune.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Refuses what `mycc-tune serve` would refuse when it starts. */ -}}
{{- define "mycc-tune.check" -}}
{{- $server := .Values.server -}}
{{- if $server.insecureAllowRemote -}}
{{- if or $server.tls.secretName $server.token.secretName -}}
{{- fail "server.insecureAllowRemote is for a server without TLS and token; expected it, or server.tls.secretName and server.token.secretName" -}}
{{- end -}}
{{- else if not (and $server.tls.secretName $server.token.secretName) -}}
{{- fail "the server is reached over the network; expected server.tls.secretName and server.token.secretName, or server.insecureAllowRemote=true" -}}
{{- end -}}
{{- end -}}

{{- define "mycc-tune.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The volumes of the credentials: `files` of the TLS secret, and the token. */ -}}
{{- define "mycc-tune.credential-volumes" -}}
{{- with .root.Values.server.tls.secretName }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
    {{- range $.files }}
      - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end }}
{{- with .root.Values.server.token.secretName }}
- name: token
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - {key: token, path: token}
{{- end }}
{{- end -}}

{{- define "mycc-tune.credential-mounts" -}}
{{- if .Values.server.tls.secretName }}
- {name: tls, mountPath: /etc/mycc-tune/tls, readOnly: true}
{{- end }}
{{- if .Values.server.token.secretName }}
- {name: token, mountPath: /etc/mycc-tune/token, readOnly: true}
{{- end }}
{{- end -}}

{{- /* The pod of a worker: root, component, values of the kind of worker, args before those of the connection. */ -}}
{{- define "mycc-tune.worker-pod" -}}
{{- $server := .root.Values.server -}}
metadata:
  labels:
    {{- include "mycc-tune.labels" . | nindent 4 }}
    mycc-tune/worker: "true"
  {{- with .values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "mycc-tune.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      {{- toYaml .root.Values.workers.seccompProfile | nindent 6 }}
  containers:
    - name: worker
      image: {{ include "mycc-tune.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - worker
        - --server={{ include "mycc-tune.name" .root }}:{{ $server.port }}
        {{- if $server.tls.secretName }}
        - --tls-ca=/etc/mycc-tune/tls/ca.crt
        {{- end }}
        {{- if $server.token.secretName }}
        - --token-file=/etc/mycc-tune/token/token
        {{- end }}
        # The server knows by the name which worker was started again.
        - --name=$(WORKER_NAME)
        {{- range .args }}
        - {{ . }}
        {{- end }}
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: WORKER_NAME
          valueFrom:
            fieldRef:
              fieldPath: {{ .nameFrom }}
        - {name: TMPDIR, value: /scratch}
        - {name: XDG_CACHE_HOME, value: /scratch/cache}
        - {name: XDG_RUNTIME_DIR, value: /scratch}
      securityContext:
        {{- include "mycc-tune.container-security" . | nindent 8 }}
      resources:
        {{- if .gpus }}
        requests:
          {{- toYaml .values.resources.requests | nindent 10 }}
          nvidia.com/gpu: {{ .gpus }}
        limits:
          {{- toYaml .values.resources.limits | nindent 10 }}
          nvidia.com/gpu: {{ .gpus }}
        {{- else }}
        {{- toYaml .values.resources | nindent 8 }}
        {{- end }}
      volumeMounts:
        - {name: scratch, mountPath: /scratch}
        {{- include "mycc-tune.credential-mounts" .root | nindent 8 }}
  volumes:
    # Candidates are libraries that are loaded from here, so it must not be mounted noexec.
    - name: scratch
      emptyDir:
        sizeLimit: {{ .root.Values.workers.scratchSize }}
    {{- include "mycc-tune.credential-volumes" (dict "root" .root "files" (list "ca.crt")) | nindent 4 }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* How the kubelet asks the server: over HTTP where it has it, else gRPC, whose probes know no TLS, else the port alone. */ -}}
{{- define "mycc-tune.probe" -}}
{{- $server := .root.Values.server -}}
{{- if $server.http.enabled -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" (ne $server.tls.secretName "") }}
{{- else if $server.insecureAllowRemote -}}
grpc:
  port: {{ $server.port }}
{{- else -}}
tcpSocket:
  port: grpc
{{- end -}}
{{- end -}}
