import type { Host, RouteExample, Surface } from './routes.ts'

/** Keys that the forms are filled with. */
export interface MatrixKeys {
  valid: string
  /** A well-formed key that does not exist. */
  unknown: string
  revoked: string
  expired: string
  /** Its user may not call any more. */
  disabledUser: string
  disabledOrganization: string
  adminToken: string
}

/** Headers that carry a key on a surface of a host (interface, Authentication 2). */
const ACCEPTED: Record<Host, Partial<Record<Surface, readonly string[]>>> = {
  base: {
    chat_completions: ['authorization', 'x-api-key'],
    messages: ['authorization', 'x-api-key'],
    responses: ['authorization'],
    models: ['authorization', 'x-api-key'],
    mcp: ['authorization'],
    connections: ['authorization'],
    agents: ['authorization', 'x-api-key'],
    management: ['authorization'],
  },
  llm: { chat_completions: ['authorization', 'api-key'], models: ['authorization', 'api-key'] },
}

/** An array sends the header once for each value. */
type SentHeaders = Record<string, string | string[]>

export interface HeaderForm {
  name: string
  headers: SentHeaders
  /** The header whose key counts, when that key is one that lets in; null when the form is refused everywhere. */
  letsInBy: string | null
}

const form = (name: string, headers: SentHeaders, letsInBy: string | null = null): HeaderForm => ({
  name,
  headers,
  letsInBy,
})

/** Every way to present a key, good and bad ones, or not to. */
export function headerForms(keys: MatrixKeys): HeaderForm[] {
  return [...fewForms(keys), ...precedence(keys.valid, keys.unknown), ...badKeys(keys)]
}

/**
 * A form of each kind: every header by itself, no header, a wrong one beside a good one, and a key that does not exist.
 */
export function kindsOfForms(keys: MatrixKeys): HeaderForm[] {
  const { valid, unknown } = keys
  return [
    form('Bearer', { authorization: `Bearer ${valid}` }, 'authorization'),
    form('x-api-key', { 'x-api-key': valid }, 'x-api-key'),
    form('api-key', { 'api-key': valid }, 'api-key'),
    form('nothing', {}),
    form('Basic', { authorization: `Basic ${Buffer.from(`key:${valid}`).toString('base64')}` }),
    form('an unknown Bearer beside valid keys', {
      authorization: `Bearer ${unknown}`,
      'x-api-key': valid,
      'api-key': valid,
    }),
  ]
}

/** The forms by themselves, enough where every form has to come to the same. */
export function fewForms({ valid }: MatrixKeys): HeaderForm[] {
  return [
    form('Bearer', { authorization: `Bearer ${valid}` }, 'authorization'),
    form('bearer in lower case', { authorization: `bearer ${valid}` }, 'authorization'),
    form('BEARER in upper case', { authorization: `BEARER ${valid}` }, 'authorization'),
    form('x-api-key', { 'x-api-key': valid }, 'x-api-key'),
    form('api-key', { 'api-key': valid }, 'api-key'),
    form('nothing', {}),
    form('an empty Authorization', { authorization: '' }),
    form('an empty x-api-key', { 'x-api-key': '' }),
    form('an empty api-key', { 'api-key': '' }),
    form('Basic', { authorization: `Basic ${Buffer.from(`key:${valid}`).toString('base64')}` }),
    form('Basic with the key as it is', { authorization: `Basic ${valid}` }),
    form('Bearer without a token', { authorization: 'Bearer' }),
    form('Bearer and a space', { authorization: 'Bearer ' }),
    form('the key without a scheme', { authorization: valid }),
    form('a word before Bearer', { authorization: `Token Bearer ${valid}` }),
    form('Bearer twice in one header', { authorization: `Bearer Bearer ${valid}` }),
    form('Bearer in two headers', { authorization: [`Bearer ${valid}`, `Bearer ${valid}`] }),
    form('a word after the token', { authorization: `Bearer ${valid} ${valid}` }),
    form('a quoted token', { authorization: `Bearer "${valid}"` }),
    form('x-api-key in two headers', { 'x-api-key': [valid, valid] }),
    form('x-api-key with Bearer', { 'x-api-key': `Bearer ${valid}` }),
    form('a cookie', { cookie: `api_key=${valid}; authorization=Bearer ${valid}` }),
    form('Proxy-Authorization', { 'proxy-authorization': `Bearer ${valid}` }),
  ]
}

/** Bearer comes first, and no check that failed falls back to another header (interface, Authentication 3). */
function precedence(valid: string, unknown: string): HeaderForm[] {
  const others = { 'x-api-key': valid, 'api-key': valid }
  const malformed = ['Bearer', 'Bearer ', `Basic ${valid}`, 'garbage', valid, `Bearer x ${valid}`]
  return [
    // workerd drops an empty Authorization header before the Worker sees it, so it is as good as absent.
    form('an empty Authorization beside x-api-key', { authorization: '', 'x-api-key': valid }, 'x-api-key'),
    form('an empty Authorization beside api-key', { authorization: '', 'api-key': valid }, 'api-key'),
    ...malformed.map((text) =>
      form(`Authorization "${text.replace(valid, '<key>')}" beside valid keys`, {
        authorization: text,
        ...others,
      }),
    ),
    form('an unknown Bearer beside valid keys', { authorization: `Bearer ${unknown}`, ...others }),
    form(
      'a valid Bearer beside unknown keys',
      { authorization: `Bearer ${valid}`, 'x-api-key': unknown, 'api-key': unknown },
      'authorization',
    ),
    form(
      'a valid Bearer beside malformed keys',
      { authorization: `Bearer ${valid}`, 'x-api-key': 'x', 'api-key': '' },
      'authorization',
    ),
    form(
      'a valid x-api-key beside an unknown api-key',
      { 'x-api-key': valid, 'api-key': unknown },
      'x-api-key',
    ),
    form(
      'an unknown x-api-key beside a valid api-key',
      { 'x-api-key': unknown, 'api-key': valid },
      'api-key',
    ),
  ]
}

function badKeys(keys: MatrixKeys): HeaderForm[] {
  const { valid } = keys
  const changed = valid.slice(0, -1) + (valid.endsWith('0') ? '1' : '0')
  const bad: Record<string, string> = {
    'a revoked key': keys.revoked,
    'an expired key': keys.expired,
    'a key of a disabled user': keys.disabledUser,
    'a key of a disabled organization': keys.disabledOrganization,
    'an unknown key': keys.unknown,
    'a truncated key': valid.slice(0, -1),
    'a key with a changed checksum': changed,
    'a key with a longer end': `${valid}0`,
    'a key in upper case': valid.toUpperCase(),
    'the id of a key': valid.split('_').slice(0, 2).join('_'),
    'a word': 'undefined',
    'a very long word': 'x'.repeat(8_000),
  }
  return Object.entries(bad).flatMap(([name, key]) => [
    form(`${name} as Bearer`, { authorization: `Bearer ${key}` }),
    form(`${name} as x-api-key`, { 'x-api-key': key }),
    form(`${name} as api-key`, { 'api-key': key }),
  ])
}

export type Verdict = 'not served' | 'refused' | 'let in'

/** The expected result of a form on a route: the interface's table, written once. */
export function verdictOf(route: RouteExample, host: Host, { letsInBy }: HeaderForm): Verdict {
  if (!route.hosts.includes(host)) return 'not served'
  if (route.surface === 'open') return 'let in'
  const accepted = ACCEPTED[host][route.surface] ?? []
  return letsInBy !== null && accepted.includes(letsInBy) ? 'let in' : 'refused'
}
