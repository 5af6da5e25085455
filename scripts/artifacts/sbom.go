package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of an SPDX 2.3 document that are used here: https://spdx.github.io/spdx-spec/v2.3/.
type spdxDocument struct {
	SPDXVersion       string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	SPDXID            string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	SPDXID           string          `json:"SPDXID"`
	VersionInfo      string          `json:"versionInfo"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	CopyrightText    string          `json:"copyrightText"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	ExternalRefs     []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm     string `json:"algorithm"`
	ChecksumValue string `json:"checksumValue"`
}

type spdxReference struct {
	ReferenceCategory string `json:"referenceCategory"`
	ReferenceType     string `json:"referenceType"`
	ReferenceLocator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	SPDXElementID      string `json:"spdxElementId"`
	RelationshipType   string `json:"relationshipType"`
	RelatedSPDXElement string `json:"relatedSpdxElement"`
}

const (
	noAssertion  = "NOASSERTION" // SPDX for: this document does not say
	ownLicense   = "MIT"
	goLicense    = "BSD-3-Clause"
	documentID   = "SPDXRef-DOCUMENT"
	mainID       = "SPDXRef-headgate"
	namespaceURL = "https://spdx.org/spdxdocs/"
)

// writeSBOM lists what a binary is made of: Go's standard library and the modules that the linker has noted in it.
func writeSBOM(out io.Writer, binary, name, version string, created time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	d := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: name, DocumentNamespace: namespaceURL + name + "-" + digest,
		CreationInfo: spdxCreation{Created: created.Format(time.RFC3339), Creators: []string{"Tool: headgate-artifacts"}},
		Packages: []spdxPackage{
			{
				Name: "headgate", SPDXID: mainID, VersionInfo: version, DownloadLocation: noAssertion, LicenseConcluded: ownLicense, LicenseDeclared: ownLicense,
				CopyrightText: noAssertion, Checksums: []spdxChecksum{{"SHA256", digest}},
			},
			dependency("stdlib", goVersion, goLicense),
		},
		Relationships: []spdxRelationship{{documentID, "DESCRIBES", mainID}, {mainID, "DEPENDS_ON", packageID("stdlib")}},
	}
	for _, module := range info.Deps {
		module = replacement(module)
		d.Packages = append(d.Packages, dependency(module.Path, module.Version, noAssertion))
		d.Relationships = append(d.Relationships, spdxRelationship{mainID, "DEPENDS_ON", packageID(module.Path)})
	}
	text := json.NewEncoder(out)
	text.SetIndent("", "  ")
	return text.Encode(d)
}

// replacement is the module that was compiled in place of another, or the module itself.
func replacement(module *debug.Module) *debug.Module {
	if module.Replace != nil {
		return module.Replace
	}
	return module
}

func dependency(path, version, license string) spdxPackage {
	return spdxPackage{
		Name: path, SPDXID: packageID(path), VersionInfo: version, DownloadLocation: noAssertion, LicenseConcluded: license, LicenseDeclared: license,
		CopyrightText: noAssertion,
		ExternalRefs:  []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ToLower(path) + "@" + version}},
	}
}

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// packageID is a package's name within the document, which may have letters, digits, dots and dashes.
func packageID(path string) string { return "SPDXRef-" + notInIDs.ReplaceAllString(path, "-") }
