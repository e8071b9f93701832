#!/bin/sh
# What this machine's kernel lacks, tried on a distribution's kernel in an emulated guest (no KVM needed): the self-tests of
# the profiles named as arguments in IPv4 and IPv6, or of those that depend on the kernel most, then kube-proxy in ipvs
# mode, the account of WireGuard's CPU time, and the kernel tests that are skipped elsewhere. The exit code is the guest's.
# Emulation is slow, so this proves functions and measures nothing.
#
#	scripts/test-vm.sh [PROFILE...]      a profile file by its path from the root of the repository
#
# KERNEL=file.deb takes another kernel than the newest of Debian backports; GUEST=command runs something else in the guest.
# It needs apt-get (the kernel is a package), qemu-system-x86_64, busybox, cpio, xz and depmod; make test-vm installs them.
set -eu
cd "$(dirname "$0")/.."
profiles="${*:-calico-ipip ipvlan macvlan aws-vpc-branch(policies=2) aws-vpc-branch-standard(policies=2) flannel-wireguard cilium-netkit calico-vxlan(encryption=wireguard) cilium-native(encryption=wireguard) cilium-vxlan(encryption=wireguard) cilium-native(encryption=ipsec) kindnet(flowtable=20) calico-nftables(flowtable=1) examples/profiles/antrea.yaml examples/profiles/antrea-noencap.yaml examples/profiles/ovn-kubernetes.yaml}"
# Tests that need what few kernels have: the first of the package, the second by name.
kernel_tests="kernel/link:. kernel/ipvs:. kernel/bpf/attach:. kernel/nft:TestFlowtable env/lab/selftest:TestBreakageIsNoticed/(encrypt|netkit|ipvs|flowtable|branch)|TestRemovedFlowtable|TestBranches"
suite=${SUITE:-bookworm-backports}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cnibench/guest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say() { echo "test-vm: $*" >&2; }
for p in qemu-system-x86_64 busybox cpio xz depmod dpkg-deb; do
	command -v "$p" >/dev/null || { say "$p is missing (Debian: apt-get install qemu-system-x86 busybox-static cpio xz-utils kmod)"; exit 1; }
done

# The kernel comes from the package archive that this machine already trusts, by a package list of its own.
fetch_kernel() {
	mkdir -p "$cache" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -1)
	[ -n "$uri" ] || { say "no package archive is configured: name a kernel by KERNEL=file.deb"; exit 1; }
	echo "deb $uri $suite main" > "$work/apt/sources.list"
	aptly="-o Dir::Etc::SourceList=$work/apt/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$work/apt/lists -o Dir::Cache=$work/apt/cache"
	apt-get $aptly -qq -o APT::Sandbox::User=root update
	name=$(apt-cache $aptly search --names-only '^linux-image-[0-9.]+.*-cloud-amd64$' | cut -d' ' -f1 | sort -V | tail -1)
	[ -n "$name" ] || { say "$suite has no cloud kernel: name one by KERNEL=file.deb"; exit 1; }
	if ! ls "$cache/${name}"_*.deb >/dev/null 2>&1; then
		say "fetching $name"
		(cd "$cache" && apt-get $aptly -qq -o APT::Sandbox::User=root download "$name")
	fi
	KERNEL=$(ls "$cache/${name}"_*.deb | tail -1)
}
[ -n "${KERNEL:-}" ] || fetch_kernel
say "kernel: $(basename "$KERNEL")"
dpkg-deb -x "$KERNEL" "$work/kernel"
version=$(ls "$work/kernel/lib/modules")

root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/etc" "$root/var/lib" "$root/usr/share" "$root/lib/modules/$version"
# Of the modules, those of networking and overlayfs: the rest is drivers of hardware that the guest has not.
(cd "$work/kernel/lib/modules/$version" && cp modules.builtin modules.builtin.modinfo modules.order "$root/lib/modules/$version/" &&
	find kernel/net kernel/drivers/net kernel/lib kernel/crypto kernel/arch kernel/fs/overlayfs -name '*.ko*' | cpio -pdm --quiet "$root/lib/modules/$version")
find "$root/lib/modules" -name '*.ko.xz' -exec xz -d {} +
depmod -b "$root" "$version"

# Programs with the libraries that they name, from this machine.
install_libraries() {
	{ ldd "$@" 2>/dev/null || true; } | grep -o '/[^ :]*' | sort -u | while read -r lib; do
		mkdir -p "$root$(dirname "$lib")"
		[ -e "$root$lib" ] || cp -L "$lib" "$root$lib"
	done
}
install_program() {
	path=$(readlink -f "$(command -v "$1")") || return 0
	mkdir -p "$root$(dirname "$path")" "$root/usr/sbin"
	cp "$path" "$root$path"
	[ -e "$root/usr/sbin/$1" ] || ln -s "$path" "$root/usr/sbin/$1"
	install_libraries "$path"
}
for p in ip bridge ethtool iptables iptables-nft ip6tables-nft iptables-restore iptables-save ip6tables ip6tables-restore ip6tables-save ipset nft kmod \
	ovs-vswitchd ovsdb-server ovsdb-tool ovs-vsctl ovs-ofctl ovs-appctl ovn-northd ovn-controller ovn-nbctl ovn-sbctl jq dash nsenter; do
	command -v "$p" >/dev/null && install_program "$p"
done
for d in /usr/lib/*/xtables /usr/lib/xtables; do
	[ -d "$d" ] && mkdir -p "$root$d" && cp "$d"/* "$root$d/" && install_libraries "$d"/*
done
mkdir -p "$root/sbin" # where the kernel itself looks for modprobe
ln -s "$(readlink -f "$(command -v kmod)")" "$root/sbin/modprobe"
ln -s usr/lib "$root/lib64" 2>/dev/null || true
cp -L "$(command -v busybox)" "$root/bin/busybox"
make -s build
cp bin/cnibench "$root/bin/cnibench"
cp /etc/os-release "$root/etc/os-release"
cp -r /usr/share/openvswitch /usr/share/ovn "$root/usr/share/"
ln -s ../run "$root/var/run"
git ls-files -co --exclude-standard examples/profiles | cpio -pdm --quiet "$root"
printf 'root:x:0:0::/:/bin/sh\n' > "$root/etc/passwd"
printf 'tcp 6 TCP\nudp 17 UDP\n' > "$root/etc/protocols" # by which ipset knows them

cat > "$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
ln -sf /usr/sbin/dash /bin/sh # busybox prefers its own ip
export PATH=/usr/sbin:/sbin:/bin:/usr/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
echo 3 > /proc/sys/kernel/printk
for m in veth bridge br_netfilter vxlan ipip wireguard ipvlan macvlan 8021q tun sch_ingress cls_bpf nf_conntrack_netlink ip_vs ip_vs_rr geneve openvswitch overlay; do
	modprobe "$m" 2>/dev/null || echo "guest: no module $m"
done
echo "guest: Linux $(uname -r)"
sh /guest.sh
echo "guest: exit $?"
poweroff -f
INIT
chmod +x "$root/init"
# step adds a command to the guest's; all are run, and the guest fails if one of them does.
step() { echo "echo 'guest: $1'; $1 || code=1" >> "$root/guest.sh"; }
if [ -n "${GUEST:-}" ]; then
	echo "$GUEST" > "$root/guest.sh"
else
	echo "set -o pipefail; code=0" > "$root/guest.sh"
	step "cnibench lab test --profiles \"$(echo $profiles | tr ' ' ,)\""
	if [ $# -eq 0 ]; then
		step "cnibench lab test --profiles flannel-vxlan --service-proxy ipvs"
		# WireGuard's work is in kernel workers on all CPUs: they are seen, and with them the account of the path's CPU closes.
		step "cnibench run --profiles raw,flannel-wireguard --workloads stream --paths pod-to-pod/cross-node --repetitions 1 --duration 8s -o /tmp/account.jsonl"
		step "grep -q wg-crypt- /tmp/account.jsonl"
		step "! grep -qE \"in no task that is still there|more time than the path\" /tmp/account.jsonl"
		for t in $kernel_tests; do
			package=${t%%:*}
			program=$(echo "$package" | tr / -).test
			CGO_ENABLED=0 go test -c -o "$root/bin/$program" "./internal/$package"
			step "$program -test.v -test.run \"${t#*:}\" | grep -v \"^=== \""
		done
	fi
	echo 'exit $code' >> "$root/guest.sh"
fi
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$work/initrd"

say "booting; emulation takes its time"
qemu-system-x86_64 -machine q35,accel=tcg -cpu max,-cx16,-pku -smp 2 -m 3072 -display none -no-reboot -monitor none -nic none \
	-kernel "$work/kernel/boot/vmlinuz-$version" -initrd "$work/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off" -serial stdio < /dev/null | sed -u 's/\r$//' | tee "$work/console"
code=$(sed -n 's/^guest: exit \([0-9]*\)$/\1/p' "$work/console")
[ -n "$code" ] || { say "the guest did not come to its end"; exit 1; }
exit "$code"
