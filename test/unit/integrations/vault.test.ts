import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openEnvelope, resealEnvelope, sealEnvelope } from '../../../src/integrations/vault/envelope.ts'
import {
  credentialHint,
  type StoredCredential,
  upstreamCredential,
} from '../../../src/integrations/vault/stored-credential.ts'

const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
const oldRing = new Map([['old', oldKey]])
const bothRing = new Map([
  ['new', newKey],
  ['old', oldKey],
])
const newRing = new Map([['new', newKey]])
const owner = { organizationId: 'o1', connectionId: 'c1' }
const SECRET = 'the secret itself'

describe('the envelope of a credential', () => {
  it('opens for its own connection only', () => {
    const { sealed, vaultKeyId } = sealEnvelope(oldRing, owner, SECRET)
    expect(vaultKeyId).toBe('old')
    expect(sealed).not.toContain(SECRET)
    expect(openEnvelope(oldRing, owner, sealed)).toBe(SECRET)
    for (const other of [
      { ...owner, organizationId: 'o2' },
      { ...owner, connectionId: 'c2' },
    ]) {
      expect(() => openEnvelope(oldRing, other, sealed)).toThrow()
    }
    expect(() => openEnvelope(newRing, owner, sealed)).toThrow()
  })

  it('does not open when any part of it was changed or exchanged', () => {
    const [first, second] = [1, 2].map(() => sealEnvelope(oldRing, owner, SECRET).sealed.split(':'))
    const [format, key, body] = first as [string, string, string]
    const mixed = [format, (second as string[])[1], body].join(':')
    const changed = [format, key, body.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))].join(':')
    for (const wrong of [mixed, changed, `${format}:${key}`, `${format}:${key}:`, `e2:${key}:${body}`, '']) {
      expect(() => openEnvelope(oldRing, owner, wrong)).toThrow()
    }
  })

  it('is sealed under the new key by rotation, after which the old key is not needed', () => {
    const { sealed } = sealEnvelope(oldRing, owner, SECRET)
    const rotated = resealEnvelope(bothRing, owner, sealed)
    expect(openEnvelope(newRing, owner, rotated)).toBe(SECRET)
    expect(rotated.split(':')[2]).toBe(sealed.split(':')[2])
    expect(() => resealEnvelope(newRing, owner, sealed)).toThrow()
  })
})

describe('headers of a credential', () => {
  const url = 'https://api.example.com/mcp'
  const origin = 'https://api.example.com'
  const login: StoredCredential = { kind: 'basic', origin, username: 'anna', password: 'pässword' }

  it('are those of the kind of authorization', () => {
    const header = upstreamCredential(
      { kind: 'header', origin, secret: 'key' },
      { url, authorization: { kind: 'header', header: 'X-Api-Key' } },
    )
    expect(header).toEqual({ headers: { 'x-api-key': 'key' }, secrets: ['key'] })
    const basic = upstreamCredential(login, { url, authorization: { kind: 'basic' } })
    const encoded = Buffer.from('anna:pässword').toString('base64')
    expect(basic).toEqual({ headers: { authorization: `Basic ${encoded}` }, secrets: [encoded, 'pässword'] })
  })

  it('are none for another kind, or for another host', () => {
    expect(upstreamCredential(login, { url, authorization: { kind: 'bearer' } })).toBeNull()
    const elsewhere = { url: 'https://api.example.com:8443/mcp', authorization: { kind: 'basic' } as const }
    expect(upstreamCredential(login, elsewhere)).toBeNull()
  })

  it('show the end of a long secret, and nothing of a short one or a password', () => {
    const bearer = (secret: string): StoredCredential => ({ kind: 'bearer', origin, secret })
    expect(credentialHint(bearer('0123456789abcdef'))).toBe('cdef')
    expect(credentialHint(bearer('0123456789abcde'))).toBeNull()
    expect(credentialHint({ ...login, password: '0123456789abcdef' })).toBeNull()
  })
})
