import { unprocessable } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import { entryOf } from '../protocols/json.ts'

export type CredentialParts = Readonly<Record<string, string>>

/** A credential in clear. It is sent to its provider only; other parts of the gateway use it to redact it. */
export interface ProviderCredential {
  parts: CredentialParts
  /** Values that must not occur in anything that is sent to a caller: secret parts, and the latest access tokens. */
  secrets: readonly string[]
}

/** Access tokens of a credential that are cut out of answers: the current one, and the one before it. */
const KEPT_TOKENS = 2

/** Adds an access token to the secrets of its credential. */
export function noteToken(credential: ProviderCredential, token: string): void {
  if (token === '' || credential.secrets.includes(token)) return
  const own = Object.values(credential.parts)
  const [parts, tokens] = [true, false].map((isPart) =>
    credential.secrets.filter((secret) => own.includes(secret) === isPart),
  ) as [string[], string[]]
  credential.secrets = [...parts, ...[...tokens, token].slice(-KEPT_TOKENS)]
}

/** A part of a credential. */
interface CredentialPart {
  /** A part that is not secret (a region) is not redacted. */
  secret: boolean
  /** Whether it has to be given, with its choice if it has one. */
  required: boolean
  /** The way to authorize that it belongs to, where a kind has several: a credential has the parts of exactly one. */
  choice?: string
}

/** The parts that a kind of provider needs, by name. */
export type CredentialForm = Readonly<Record<string, CredentialPart>>

/** The form of a single secret, such as an API key. A credential in plain text is this part. */
export const SECRET_ONLY: CredentialForm = { secret: { secret: true, required: true } }

/** Names of the part that a credential in plain text is. */
const PLAIN = ['secret', 'api_key']

/**
 * Checks a credential against the form of its kind.
 * @param given as in the management API; a text is the part `secret`.
 * @throws ApiError `unprocessable` for missing or unknown parts. The message quotes neither values nor names that were
 * given, because a secret may stand in the place of a name.
 */
export function credentialOf(form: CredentialForm, given: string | CredentialParts): ProviderCredential {
  const plain = PLAIN.find((name) => Object.hasOwn(form, name)) ?? 'secret'
  const parts = typeof given === 'string' ? { [plain]: given } : given
  const choices = choicesOf(form)
  const chosen = choices.filter((choice) =>
    Object.keys(parts).some((name) => entryOf(form, name)?.choice === choice),
  )
  const missing = Object.keys(form).filter((name) => {
    const { required, choice } = form[name] as CredentialPart
    return required && (!choice || chosen.includes(choice)) && !Object.hasOwn(parts, name)
  })
  const isAmbiguous = choices.length > 0 && chosen.length !== 1
  const unknown = Object.keys(parts).filter((name) => !Object.hasOwn(form, name)).length
  if (missing.length > 0 || unknown > 0 || isAmbiguous) {
    throw unprocessable(
      `credential: this kind of provider takes ${formText(form)}` +
        `${missing.length > 0 ? `; missing: ${listed(missing)}` : ''}` +
        `${unknown > 0 ? `; not known: ${counted(unknown, 'other part')}` : ''}.`,
    )
  }
  const secrets = Object.entries(parts).flatMap(([name, value]) => (form[name]?.secret ? [value] : []))
  return { parts, secrets }
}

const choicesOf = (form: CredentialForm): string[] => [
  ...new Set(Object.values(form).flatMap(({ choice }) => choice ?? [])),
]

/** Such as "`region`, and either `api_key` or `access_key_id`, `secret_access_key`". */
function formText(form: CredentialForm): string {
  const namesOf = (choice?: string) =>
    listed(Object.keys(form).filter((name) => form[name]?.choice === choice))
  const always = namesOf()
  const choices = choicesOf(form)
  if (choices.length === 0) return always
  return `${always === '' ? '' : `${always}, and `}either ${choices.map(namesOf).join(' or ')}`
}

const listed = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')

/**
 * Binds a sealed credential to its provider, so that it does not open in another provider's row. Before credentials had
 * parts, the secret itself was sealed, under the plain context: no secret can be mistaken for a record of parts.
 */
const partsContext = (providerId: string) => `provider-credential:${providerId}`
const plainContext = (providerId: string) => `provider:${providerId}`

/** The contexts under which the credential of a provider may be sealed. */
export const credentialContexts = (providerId: string): readonly string[] => [
  partsContext(providerId),
  plainContext(providerId),
]

/** Seals a credential for the row of its provider. */
export function sealCredential(ring: KeyRing, providerId: string, { parts }: ProviderCredential): string {
  return seal(ring, JSON.stringify(parts), partsContext(providerId))
}

/** Opens a credential of `sealCredential`, or a secret that was sealed alone. @throws when it does not open, or lacks a part. */
export function openCredential(
  ring: KeyRing,
  providerId: string,
  form: CredentialForm,
  sealed: string,
): ProviderCredential {
  const parts = openParts(ring, providerId, sealed)
  return credentialOf(form, parts ?? unseal(ring, sealed, plainContext(providerId)))
}

function openParts(ring: KeyRing, providerId: string, sealed: string): CredentialParts | null {
  try {
    return JSON.parse(unseal(ring, sealed, partsContext(providerId))) as CredentialParts
  } catch {
    return null
  }
}
