import type * as z from 'zod'
import { isBase64 } from '../../gateway/protocols/text-fields.ts'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import type { Owner } from '../model/types.ts'

/** Maximum length in UTF-16 units of JSON: many times the length of one answer of a model. */
const LONGEST_SECRET = 8 * 1024 * 1024
/** Base64 of UTF-8 takes up to four bytes for each UTF-16 unit. */
const LONGEST_SEALED = 4 * LONGEST_SECRET + 1024

/** Marks that identify one kind of sealed content. */
interface SealKind<Secret> {
  /** Distinguishes content that this service has sealed from that of others. */
  prefix: `hg${string}1_`
  /** Bound to the content: it does not open as another kind. */
  purpose: string
  schema: z.ZodType<Secret>
}

/** Seals values as `encrypted_content`. Only this service can open it, and only for the same owner. */
export class OwnerSeal<Secret> {
  readonly #kind: SealKind<Secret>

  constructor(kind: SealKind<Secret>) {
    this.#kind = kind
  }

  /**
   * @param ring `VAULT_KEYS`.
   * @returns null for more than 8 Mi UTF-16 units.
   */
  seal(ring: KeyRing, owner: Owner, secret: Secret): string | null {
    const text = JSON.stringify(secret)
    if (text.length > LONGEST_SECRET) return null
    return this.#kind.prefix + seal(ring, text, this.#contextOf(owner))
  }

  /** @returns null for any other text: of another owner, kind or service, changed, or sealed with a key that was removed. */
  open(ring: KeyRing, owner: Owner, text: string): Secret | null {
    const { prefix, schema } = this.#kind
    if (!text.startsWith(prefix) || text.length > LONGEST_SEALED) return null
    try {
      return schema.parse(JSON.parse(unseal(ring, text.slice(prefix.length), this.#contextOf(owner))))
    } catch {
      return null
    }
  }

  #contextOf({ organizationId, userId }: Owner): string {
    return JSON.stringify([this.#kind.purpose, organizationId, userId])
  }
}

/** Whether content of an item has the form of what an `OwnerSeal` returns, which holds no readable text. */
export function isSealed(contents: Uint8Array): boolean {
  const head = SEALED_HEAD.exec(String.fromCharCode(...contents.subarray(0, SEALED_HEAD_BYTES)))
  return head !== null && isBase64(contents, head[0].length, contents.length)
}

/** The prefix, then version, key id and initialization vector of `seal`. */
const SEALED_HEAD = /^hg[a-z]1_v1\.[\w-]{1,64}\.[\w-]{16}\./
const SEALED_HEAD_BYTES = 100
