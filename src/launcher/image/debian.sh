# A Debian system from packages, as an OCI layout: the recipe of `burrow image build --debian`.
#
#     sh -c RECIPE debian FOLDER MMDEBSTRAP SUITE PACKAGES [SOURCE]
#
# Root of a user namespace, with mounts and processes of its own (debian_build.h). FOLDER is empty and
# ours: the layout is in FOLDER/layout afterwards. SOURCE is a URL or a line of apt's, or `-` for a
# file of sources on standard input; without it the machine's own file serves.
set -eu

folder=$1 mmdebstrap=$2 suite=$3 packages=$4 source=${5:-}

# What agents reach for, and what Burrow's own API wants in an image.
usual=bash,ca-certificates,curl,git,ipython3,jq,less,nodejs,npm,procps,python3,python3-ipython
usual=$usual,python3-matplotlib,python3-numpy,python3-pandas,python3-pip,python3-venv,ripgrep
usual=$usual,squashfs-tools,wget

# Folders that the scripts of packages have no business in. Where the machine's /proc is not all to be
# seen, it stays.
mount --make-rprivate /
for hidden in /home /root /srv /mnt /media; do
    if [ -d "$hidden" ]; then mount -t tmpfs -o nosuid tmpfs "$hidden"; fi
done
mount -t proc -o nosuid,nodev,noexec proc /proc 2>/dev/null || :

if [ "$source" = - ]; then
    source=$folder/burrow.list
    cat >"$source"
    if grep -q '^Types:' "$source"; then
        mv "$source" "$folder/burrow.sources"
        source=$folder/burrow.sources
    fi
fi
for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -z "$source" ] && [ -r "$file" ]; then source=$file; fi
done

cd "$folder"
mkdir -p tmp layout/blobs/sha256
export TMPDIR="$folder/tmp"

# What mmdebstrap copies from this machine is nobody's business.
"$mmdebstrap" --mode=unshare --variant=apt --format=tar --include="${packages:-$usual}" \
    --customize-hook='rm -f "$1/etc/hostname" "$1/etc/resolv.conf"' "${suite:-bookworm}" - \
    ${source:+"$source"} </dev/null >archive || exit 1

# A file's place is its digest: prints it, then its size.
put() {
    digest=$(sha256sum "$1")
    digest=${digest%% *}
    stat -c "$digest %s" "$1"
    mv "$1" "layout/blobs/sha256/$digest"
}

type=application/vnd.oci.image
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
layer=$(put archive)
printf '{"os":"linux","config":{"Env":["PATH=%s","LANG=C.UTF-8"],"Cmd":["bash"]},
"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$path" "${layer% *}" >config
config=$(put config)
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json",
"config":{"mediaType":"%s.config.v1+json","digest":"sha256:%s","size":%s},
"layers":[{"mediaType":"%s.layer.v1.tar","digest":"sha256:%s","size":%s}]}' \
    $type $type ${config% *} ${config#* } $type ${layer% *} ${layer#* } >manifest
manifest=$(put manifest)
printf '{"schemaVersion":2,"manifests":[{"mediaType":"%s.manifest.v1+json",
"digest":"sha256:%s","size":%s}]}' $type ${manifest% *} ${manifest#* } >layout/index.json
printf '{"imageLayoutVersion":"1.0.0"}' >layout/oci-layout
