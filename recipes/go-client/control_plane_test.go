// Package recipe tests against a control plane, with client-go alone.
package recipe

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 5 * time.Minute

// startControlPlane starts control loops, scheduler and one simulated node, which end with the test.
func startControlPlane(t *testing.T, flags ...string) *rest.Config {
	t.Helper()
	flags = append([]string{"up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, flags...)
	program := exec.Command(setpoint(), flags...)
	program.Stderr = os.Stderr
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		_ = program.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		ready, found := strings.CutPrefix(lines.Text(), "ready ")
		if !found {
			continue
		}
		_, kubeconfig, _ := strings.Cut(ready, "kubeconfig=")
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	t.Fatal("setpoint ended before it was ready")
	return nil
}

func setpoint() string {
	if path := os.Getenv("SETPOINT"); path != "" {
		return path
	}
	return "setpoint"
}

// TestMain says what is missing before the first test fails for it.
func TestMain(m *testing.M) {
	if _, err := exec.LookPath(setpoint()); err != nil {
		fmt.Fprintln(os.Stderr, "put setpoint on PATH, or its path into SETPOINT:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
