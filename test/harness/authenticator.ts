import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** Options of a ceremony, as the gateway sends them. */
interface CeremonyOptions {
  challenge: string
  /** Of a registration. */
  rp?: { id: string }
  user?: { id: string }
  /** Of a sign-in. */
  rpId?: string
}

interface StoredCredential {
  id: string
  privateKey: KeyObject
  rpId: string
  userHandle: string
  counter: number
}

/** Which flags a faulty authenticator leaves out, and the origin that its browser is at. */
interface Behaviour {
  origin: string
  isVerified?: boolean
}

const base64url = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64url')
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest()

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_CREDENTIAL = 0x40

/** A passkey provider in software: P-256 keys, attestation "none" (https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data). */
export class Authenticator {
  readonly credentials: StoredCredential[] = []
  readonly #behaviour: Behaviour

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour
  }

  /** What `navigator.credentials.create` gives, as JSON. */
  register({ challenge, rp, user }: CeremonyOptions) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const id = randomBytes(16)
    const credential: StoredCredential = {
      id: base64url(id),
      privateKey,
      rpId: rp?.id ?? '',
      userHandle: user?.id ?? '',
      counter: 0,
    }
    this.credentials.push(credential)
    const length = Buffer.alloc(2)
    length.writeUInt16BE(id.length)
    const attested = Buffer.concat([Buffer.alloc(16), length, id, coseKey(publicKey)])
    const authenticatorData = Buffer.concat([this.#data(credential, HAS_CREDENTIAL), attested])
    return {
      ...head(credential),
      response: {
        clientDataJSON: this.#clientData('webauthn.create', challenge),
        attestationObject: base64url(attestationObject(authenticatorData)),
        transports: ['internal'],
      },
    }
  }

  /** What `navigator.credentials.get` gives for one of the credentials, the newest where none is named. */
  answer({ challenge }: CeremonyOptions, credential = this.credentials.at(-1)) {
    if (credential === undefined) throw new Error('the authenticator has no credential')
    credential.counter += 1
    const authenticatorData = this.#data(credential, 0)
    const clientDataJSON = this.#clientData('webauthn.get', challenge)
    const signed = Buffer.concat([authenticatorData, sha256(Buffer.from(clientDataJSON, 'base64url'))])
    return {
      ...head(credential),
      response: {
        clientDataJSON,
        authenticatorData: base64url(authenticatorData),
        signature: base64url(sign('sha256', signed, credential.privateKey)),
        userHandle: credential.userHandle,
      },
    }
  }

  #clientData(type: string, challenge: string): string {
    return base64url(JSON.stringify({ type, challenge, origin: this.#behaviour.origin, crossOrigin: false }))
  }

  #data({ rpId, counter }: StoredCredential, more: number): Buffer {
    const { isVerified = true } = this.#behaviour
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    const flags = USER_PRESENT | (isVerified ? USER_VERIFIED : 0) | more
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), count])
  }
}

const head = ({ id }: StoredCredential) => ({
  id,
  rawId: id,
  type: 'public-key',
  clientExtensionResults: {},
  authenticatorAttachment: 'platform',
})

/** A COSE key: {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}. */
function coseKey(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.concat([Buffer.from([0x58, 32]), Buffer.from(text, 'base64url')])
  return Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
    bytes(x),
    Buffer.from([0x22]),
    bytes(y),
  ])
}

/** CBOR of {fmt: 'none', attStmt: {}, authData}. */
function attestationObject(authenticatorData: Buffer): Buffer {
  const text = (value: string) => Buffer.from([0x60 + value.length, ...Buffer.from(value)])
  return Buffer.concat([
    Buffer.from([0xa3]),
    text('fmt'),
    text('none'),
    text('attStmt'),
    Buffer.from([0xa0]),
    text('authData'),
    Buffer.from([0x58, authenticatorData.length]),
    authenticatorData,
  ])
}
