package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed mutantswitch/switch.go
var switchSource []byte

// switchDir is the folder of the module in which package mutantswitch seems to be.
const switchDir = "mutantswitch"

// compiler says which mutants are programs, by their types, without building them.
type compiler struct {
	root, module string
	files        *token.FileSet
	packages     map[string]*checkedPackage // by their folder below root
	exports      map[string]string          // by import path: where the compiler has written a package's types
	bare         map[*token.File]bool       // those without bodies of functions
	imports      types.ImporterFrom
	switches     *types.Package
}

// checkedPackage is a package as it is without mutants.
type checkedPackage struct {
	path    string
	names   []string              // of its files, below root
	trees   []*ast.File           // without the bodies of functions, which nothing outside of them depends on
	numbers map[string]types.Type // of the literals, by their place
}

// numberType is a type as the source in a number's place writes it, and the package that it must import for that, if any.
type numberType struct{ name, path string }

// newCompiler finds the packages of the folders that mutants lie in, and all that they import.
func newCompiler(root string, all []mutant) (*compiler, error) {
	c := &compiler{root: root, files: token.NewFileSet(), packages: map[string]*checkedPackage{}, exports: map[string]string{}, bare: map[*token.File]bool{}}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{.Export}}\t{{join .GoFiles \",\"}}", "os", "strconv", "sync/atomic"}
	var folders []string
	for _, m := range all {
		if dir := filepath.Dir(m.file); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
			args = append(args, "./"+filepath.ToSlash(dir))
		}
	}
	list := exec.Command("go", args...)
	list.Dir = root
	out, err := list.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %s", exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		path, dir, export, names := words[0], words[1], words[2], words[3]
		c.exports[path] = export
		if below, err := filepath.Rel(root, dir); err == nil && slices.Contains(folders, below) {
			p := &checkedPackage{path: path, numbers: map[string]types.Type{}}
			for _, name := range strings.Split(names, ",") {
				p.names = append(p.names, filepath.Join(below, name))
			}
			c.packages[below] = p
		}
	}
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(c.exports[path]) }).(types.ImporterFrom)
	return c, c.parse()
}

// parse reads all packages, and the types of their numbers.
func (c *compiler) parse() (err error) {
	modulePath := exec.Command("go", "list", "-m")
	modulePath.Dir = c.root
	name, err := modulePath.Output()
	if err != nil {
		return err
	}
	c.module = strings.TrimSpace(string(name))
	tree, err := parser.ParseFile(c.files, switchDir+"/switch.go", switchSource, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if c.switches, err = c.check(c.switchPath(), []*ast.File{tree}, nil); err != nil {
		return err
	}
	for _, p := range c.packages {
		for _, name := range p.names {
			tree, err := parser.ParseFile(c.files, filepath.Join(c.root, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			p.trees = append(p.trees, tree)
		}
		info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if _, err := c.check(p.path, p.trees, &info); err != nil {
			return err
		}
		for e, of := range info.Types {
			if _, ok := e.(*ast.BasicLit); ok {
				at := c.files.Position(e.Pos())
				p.numbers[numberPlace(at.Filename, at.Offset)] = of.Type
			}
		}
		for _, tree := range p.trees {
			for _, decl := range tree.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok {
					fn.Body = nil
				}
			}
			c.bare[c.files.File(tree.Package)] = true
		}
	}
	return nil
}

func (c *compiler) switchPath() string { return c.module + "/" + switchDir }

func numberPlace(path string, offset int) string { return fmt.Sprintf("%s:%d", path, offset) }

// check looks at the types of a package, and returns the first error. Of files without the bodies of their functions there are none: these
// have been looked at before, and what is missing are uses of imports.
func (c *compiler) check(path string, trees []*ast.File, info *types.Info) (p *types.Package, err error) {
	conf := types.Config{Importer: c, Error: func(found error) {
		if at := (types.Error{}); err == nil && !(errors.As(found, &at) && at.Soft && c.isBare(at.Pos)) {
			err = found
		}
	}}
	p, _ = conf.Check(path, c.files, trees, info)
	return p, err
}

// isBare reports whether a place is in a file whose functions have no bodies any more.
func (c *compiler) isBare(at token.Pos) bool { return c.bare[c.files.File(at)] }

// Import returns a package that another imports.
func (c *compiler) Import(path string) (*types.Package, error) {
	if path == c.switchPath() {
		return c.switches, nil
	}
	return c.imports.ImportFrom(path, c.root, 0)
}

// compiles reports whether a mutant is a program, alone and as a choice, and completes it for the latter. What must be constant, as the
// length of an array, cannot be chosen.
func (c *compiler) compiles(m *mutant) (bool, error) {
	p := c.packages[filepath.Dir(m.file)]
	source, err := os.ReadFile(filepath.Join(c.root, m.file))
	if err != nil {
		return false, err
	}
	if of := p.numbers[numberPlace(filepath.Join(c.root, m.file), m.from)]; m.what == moved && of != nil {
		m.number.name = types.TypeString(of, func(other *types.Package) string {
			if other.Path() == p.path {
				return ""
			}
			m.number.path = other.Path()
			return importedAs(other.Path())
		})
	}
	for _, changed := range [][]byte{m.apply(source), c.withChoices(source, []mutant{*m})} {
		tree, err := parser.ParseFile(c.files, m.file, changed, parser.SkipObjectResolution)
		if err != nil {
			return false, nil
		}
		trees := slices.Clone(p.trees)
		trees[slices.Index(p.names, m.file)] = tree
		if _, err := c.check(p.path, trees, nil); err != nil {
			return false, nil
		}
	}
	return true, nil
}

// importedAs is the name by which a choice imports a package, which nothing else of the file has.
func importedAs(path string) string {
	return "mutant_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, path)
}

// withChoices is a file with choices of all of its mutants, which lie apart from each other and are in order.
func (c *compiler) withChoices(source []byte, mutants []mutant) []byte {
	tree, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly)
	if err != nil {
		panic(err) // it has been read before
	}
	imports := map[string]string{c.switchPath(): "mutantswitch"}
	for _, m := range mutants {
		if m.number.path != "" {
			imports[m.number.path] = importedAs(m.number.path)
		}
	}
	head := int(tree.Name.End()) - 1
	changed := slices.Clone(source[:head])
	for path, name := range imports {
		changed = fmt.Appendf(changed, "; import %s %q", name, path)
	}
	for _, m := range mutants {
		changed = append(changed, source[head:m.from]...)
		changed = append(changed, m.choice(m.id)...)
		head = m.to
	}
	return append(changed, source[head:]...)
}
