import { describe, expect, it } from 'vitest'
import {
  type CredentialForm,
  credentialOf,
  openCredential,
  SECRET_ONLY,
  sealCredential,
} from '../../../../src/gateway/providers/credential.ts'
import { seal } from '../../../../src/lib/crypto.ts'

const RING = new Map([['k', new Uint8Array(32).fill(7)]])
const FORM: CredentialForm = {
  key_id: { secret: false, required: true },
  secret: { secret: true, required: true },
  token: { secret: true, required: false },
}

describe('a sealed credential', () => {
  it('opens with its parts, in the row of its provider alone', () => {
    const parts = { key_id: 'AKIA1', secret: 'sk-one', token: 't' }
    const sealed = sealCredential(RING, 'p', credentialOf(FORM, parts))
    expect(openCredential(RING, 'p', FORM, sealed)).toEqual({ parts, secrets: ['sk-one', 't'] })
    expect(() => openCredential(RING, 'q', FORM, sealed)).toThrow()
    expect(() => openCredential(new Map(), 'p', FORM, sealed)).toThrow('cannot be opened')
  })

  it('that was sealed before there were parts is the secret, whatever it looks like', () => {
    for (const secret of ['sk-one', '{"secret":"sk-two"}', '"', '{"key_id":"a","secret":"b"}']) {
      const sealed = seal(RING, secret, 'provider:p')
      expect(openCredential(RING, 'p', SECRET_ONLY, sealed)).toEqual({ parts: { secret }, secrets: [secret] })
      expect(() => openCredential(RING, 'q', SECRET_ONLY, sealed)).toThrow()
    }
  })

  it('that lacks a part its kind needs does not open', () => {
    const sealed = sealCredential(RING, 'p', credentialOf(SECRET_ONLY, 'sk-one'))
    expect(() => openCredential(RING, 'p', FORM, sealed)).toThrow('missing: `key_id`')
  })
})

describe('credentialOf', () => {
  it('takes a text for the part `secret`', () => {
    expect(credentialOf(SECRET_ONLY, 'sk-one')).toEqual(credentialOf(SECRET_ONLY, { secret: 'sk-one' }))
  })

  it.each([
    ['no parts', {}, 'credential: this kind of provider takes `secret`; missing: `secret`.'],
    ['another part', { sk_pasted: 'x', secret: 'y' }, 'takes `secret`; not known: 1 other part.'],
    ['a name of every object', { toString: 'x', secret: 'y' }, 'not known: 1 other part.'],
  ])('refuses %s, without a word of what was given', (_name, parts, message) => {
    expect(() => credentialOf(SECRET_ONLY, parts)).toThrow(message)
    expect(() => credentialOf(SECRET_ONLY, parts)).toThrow(
      expect.objectContaining({ kind: 'unprocessable', message: expect.not.stringContaining('sk_pasted') }),
    )
  })
})
