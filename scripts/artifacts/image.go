package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Media types of the OCI image specification: https://github.com/opencontainers/image-spec.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	Created string `json:"created"`
	platform
	Config runConfig `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []history `json:"history"`
}

type history struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

// runConfig is how a container runs, which the Dockerfile says.
type runConfig struct {
	User         string              `json:"User"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts"`
	Env          []string            `json:"Env"`
	Entrypoint   []string            `json:"Entrypoint"`
	Healthcheck  *healthcheck        `json:"Healthcheck,omitempty"`
	Labels       map[string]string   `json:"Labels"`
}

// healthcheck is Docker's addition to the specification.
type healthcheck struct {
	Test        []string      `json:"Test"`
	Interval    time.Duration `json:",omitempty"`
	Timeout     time.Duration `json:",omitempty"`
	StartPeriod time.Duration `json:",omitempty"`
}

// layout is an OCI image layout that is being put together: its files by their names.
type layout map[string][]byte

// add stores content under its digest.
func (l layout) add(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	l["blobs/sha256/"+digest] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (l layout) addJSON(mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	return l.add(mediaType, text), err
}

// writeImage writes an image for each platform, and an index of all of them, as an archive that `skopeo copy oci-archive:FILE …` and
// `docker load` take. Each image has the binary and nothing else.
func writeImage(out io.Writer, dockerfile []byte, version, revision string, created time.Time, binaries []string) error {
	run, err := parseDockerfile(dockerfile)
	if err != nil {
		return err
	}
	run.Labels = map[string]string{
		"org.opencontainers.image.title": "headgate", "org.opencontainers.image.version": version, "org.opencontainers.image.revision": revision,
		"org.opencontainers.image.licenses": ownLicense, "org.opencontainers.image.created": created.Format(time.RFC3339),
	}
	files := layout{}
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, entry := range binaries {
		where, path, ok := strings.Cut(entry, "=")
		system, architecture, both := strings.Cut(where, "/")
		if !ok || !both {
			return fmt.Errorf("%q is not OS/ARCH=BINARY", entry)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d, err := files.addImage(binary, platform{architecture, system}, run, created)
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, d)
	}
	whole, err := files.addJSON(typeIndex, all)
	if err != nil {
		return err
	}
	whole.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "docker.io/library/headgate:" + version,
	}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{whole}})
	if err != nil {
		return err
	}
	files["index.json"] = top
	files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return files.write(out, created)
}

// addImage adds the image for one platform.
func (l layout) addImage(binary []byte, where platform, run runConfig, created time.Time) (descriptor, error) {
	var layer bytes.Buffer
	if err := writeLayer(&layer, binary, created); err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(layer.Bytes())
	var compressed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := zip.Write(layer.Bytes()); err != nil {
		return descriptor{}, err
	}
	if err := zip.Close(); err != nil {
		return descriptor{}, err
	}
	config := imageConfig{Created: created.Format(time.RFC3339), platform: where, Config: run}
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{"sha256:" + hex.EncodeToString(sum[:])}
	config.History = []history{{config.Created, "headgate-artifacts"}}
	configured, err := l.addJSON(typeConfig, config)
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.addJSON(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: configured, Layers: []descriptor{l.add(typeLayer, compressed.Bytes())}, Annotations: run.Labels,
	})
	d.Platform = &where
	return d, err
}

// dataOwner owns the image's directory for data: the user that the container runs as.
const dataOwner = 65532

// writeLayer writes the image's file system: /headgate, and /data, whose owner a volume that is mounted there takes.
func writeLayer(out io.Writer, binary []byte, created time.Time) error {
	archive := tar.NewWriter(out)
	if err := archive.WriteHeader(&tar.Header{Name: "headgate", Mode: 0o755, Size: int64(len(binary)), ModTime: created, Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	if _, err := archive.Write(binary); err != nil {
		return err
	}
	data := &tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: dataOwner, Gid: dataOwner, ModTime: created, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(data); err != nil {
		return err
	}
	return archive.Close()
}

// write writes the layout as a tar archive, in the order of names.
func (l layout) write(out io.Writer, created time.Time) error {
	archive := tar.NewWriter(out)
	var names []string
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: created, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(l[name])), ModTime: created, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(l[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

var (
	lastStage   = regexp.MustCompile(`(?m)^FROM .*$`)
	instruction = regexp.MustCompile(`^([A-Z]+) (.*)$`)
	assignment  = regexp.MustCompile(`([A-Z_]+)=(?:"([^"]*)"|(\S*))`)
)

// parseDockerfile reads how a container runs from the instructions after the last FROM. It knows those that this project's Dockerfile has, and
// refuses others.
func parseDockerfile(text []byte) (run runConfig, err error) {
	stages := lastStage.FindAllIndex(text, -1)
	if len(stages) == 0 {
		return run, fmt.Errorf("the Dockerfile has no FROM")
	}
	run.ExposedPorts = map[string]struct{}{}
	for line := range strings.Lines(string(text[stages[len(stages)-1][1]:])) {
		line = strings.TrimSpace(line)
		found := instruction.FindStringSubmatch(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case found == nil:
			return run, fmt.Errorf("not an instruction of the Dockerfile: %q", line)
		}
		switch value := found[2]; found[1] {
		case "COPY": // what writeLayer puts in
		case "USER":
			run.User = value
		case "EXPOSE":
			for _, port := range strings.Fields(value) {
				run.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case "ENV":
			for _, pair := range assignment.FindAllStringSubmatch(value, -1) {
				run.Env = append(run.Env, pair[1]+"="+pair[2]+pair[3])
			}
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(value), &run.Entrypoint)
		case "HEALTHCHECK":
			run.Healthcheck, err = parseHealthcheck(value)
		default:
			err = fmt.Errorf("an instruction that is not known here: %s", found[1])
		}
		if err != nil {
			return run, err
		}
	}
	return run, nil
}

// parseHealthcheck reads `--interval=10s … CMD ["program", "word"]`.
func parseHealthcheck(text string) (*healthcheck, error) {
	options, command, ok := strings.Cut(text, "CMD ")
	if !ok {
		return nil, fmt.Errorf("a HEALTHCHECK without CMD: %q", text)
	}
	h := &healthcheck{}
	for _, option := range strings.Fields(options) {
		name, value, _ := strings.Cut(option, "=")
		length, err := time.ParseDuration(value)
		if err != nil {
			return nil, err
		}
		switch name {
		case "--interval":
			h.Interval = length
		case "--timeout":
			h.Timeout = length
		case "--start-period":
			h.StartPeriod = length
		default:
			return nil, fmt.Errorf("an option of HEALTHCHECK that is not known here: %s", name)
		}
	}
	var words []string
	if err := json.Unmarshal([]byte(command), &words); err != nil {
		return nil, err
	}
	h.Test = append([]string{"CMD"}, words...)
	return h, nil
}
