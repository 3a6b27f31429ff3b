#!/bin/bash
# Makes the certificates of these tests anew, in this directory; they last until 2120, or are expired for ever.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
touch "$work/index"
cat >"$work/ca.conf" <<CONF
[ca]
default_ca = own
[own]
database = $work/index
new_certs_dir = $work
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
x509_extensions = server
[any]
commonName = supplied
[server]
subjectAltName = IP:127.0.0.1, DNS:localhost
authorityKeyIdentifier = keyid
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
CONF
new() { openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" "${@:2}"; }
sign() { openssl ca -batch -notext -config "$work/ca.conf" -in "$work/$1.csr" -out "$1.pem" -startdate "$2" -enddate "$3" "${@:4}"; }
new authority -out "$work/authority.csr"
sign authority 20200101000000Z 21200101000000Z -selfsign -keyfile authority.key -extensions authority
new good -out "$work/good.csr"
sign good 20200101000000Z 21200101000000Z -cert authority.pem -keyfile authority.key
new expired -out "$work/expired.csr"
sign expired 20200101000000Z 20210102030405Z -cert authority.pem -keyfile authority.key
new stranger -out "$work/stranger.csr"
sign stranger 20200101000000Z 20210102030405Z -selfsign -keyfile stranger.key
rm authority.key
