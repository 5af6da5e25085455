# Homebrew's formula for headgate. scripts/release.sh fills in the words between @.
class Headgate < Formula
  desc "Rate-limit server that speaks the Redis protocol"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "@DOWNLOADS@/headgate-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@SHA256-darwin-arm64@"
    end
    on_intel do
      url "@DOWNLOADS@/headgate-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@SHA256-darwin-amd64@"
    end
  end

  on_linux do
    on_arm do
      url "@DOWNLOADS@/headgate-@VERSION@-linux-arm64.tar.gz"
      sha256 "@SHA256-linux-arm64@"
    end
    on_intel do
      url "@DOWNLOADS@/headgate-@VERSION@-linux-amd64.tar.gz"
      sha256 "@SHA256-linux-amd64@"
    end
  end

  def install
    bin.install "headgate"
    etc.install "headgate.conf"
    doc.install "README.md", "CHANGELOG.md"
    (var/"headgate").mkpath
  end

  service do
    run [opt_bin/"headgate", etc/"headgate.conf", "--dir", var/"headgate"]
    keep_alive true
    log_path var/"log/headgate.log"
    error_log_path var/"log/headgate.log"
  end

  test do
    port = free_port
    pid = spawn bin/"headgate", "--port", port.to_s, "--save", ""
    sleep 2
    system bin/"headgate", "ping", "--port", port.to_s
    assert_match version.to_s, shell_output("#{bin}/headgate version")
  ensure
    Process.kill "TERM", pid
    Process.wait pid
  end
end
