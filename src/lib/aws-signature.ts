import { createHash, createHmac } from 'node:crypto'

// AWS Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

/** Names in lower case. */
type HeaderRecord = Readonly<Record<string, string>>

/** The keys of an AWS principal; a session token belongs to temporary ones. */
export interface AwsKeys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | null
}

interface RequestToSign {
  method: string
  url: string
  /** Headers to sign besides `host`; names in lower case. */
  headers: HeaderRecord
  /** SHA-256 of the body in lowercase hex. */
  bodyHash: string
  /** Milliseconds since the epoch. */
  now: number
}

type Signer = (request: RequestToSign) => string

/**
 * Signs requests to one service in one region.
 * @param service of the credential scope; it is not the first label of the host: `bedrock` for `bedrock-runtime.*`.
 * @returns a function that gives the value of a request's `authorization`.
 */
export function awsSigner(
  keys: Pick<AwsKeys, 'accessKeyId' | 'secretAccessKey'>,
  region: string,
  service: string,
): Signer {
  let derived = { date: '', key: Buffer.alloc(0) }
  let target = canonicalTarget('https://unused')
  return ({ method, url, headers, bodyHash, now }) => {
    const time = amazonTime(now)
    const date = time.slice(0, 8)
    // The same for all requests of a day.
    if (derived.date !== date)
      derived = { date, key: derivedKey(keys.secretAccessKey, [date, region, service]) }
    // Most requests have the URL of the one before: that of a model.
    if (target.url !== url) target = canonicalTarget(url)
    const signed = { host: target.host, ...headers }
    const scope = `${date}/${region}/${service}/aws4_request`
    const canonical = canonicalRequest(method, target, signed, bodyHash)
    const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`
    const signature = createHmac('sha256', derived.key).update(toSign).digest('hex')
    const names = Object.keys(signed).sort().join(';')
    return `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  }
}

/**
 * The headers of a request to a service that is sent its hash and its time, with their signature.
 * @param request its `headers` are signed with them, and returned
 */
export function signedHeaders(
  sign: Signer,
  { sessionToken }: Pick<AwsKeys, 'sessionToken'>,
  { method, url, bodyHash, now, headers: own }: Omit<RequestToSign, 'headers'> & Partial<RequestToSign>,
): HeaderRecord {
  const headers = {
    ...own,
    'x-amz-content-sha256': bodyHash,
    'x-amz-date': amazonTime(now),
    ...(sessionToken !== null && { 'x-amz-security-token': sessionToken }),
  }
  return { ...headers, authorization: sign({ method, url, headers, bodyHash, now }) }
}

/** `20261123T120000Z`. @param now milliseconds since the epoch. */
function amazonTime(now: number): string {
  const [date = '', time = ''] = new Date(now).toISOString().split('T')
  return `${date.replaceAll('-', '')}T${time.slice(0, 8).replaceAll(':', '')}Z`
}

const derivedKey = (secretAccessKey: string, scope: readonly string[]): Buffer =>
  [...scope, 'aws4_request'].reduce<Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    Buffer.from(`AWS4${secretAccessKey}`),
  )

/** The parts of a URL in the form that is signed. */
interface CanonicalTarget {
  url: string
  host: string
  path: string
  query: string
}

function canonicalTarget(url: string): CanonicalTarget {
  const { host, pathname, searchParams } = new URL(url)
  // The path as it is sent is percent-encoded once more; a query only once. (S3 takes no second encoding: its paths must consist of
  // unreserved characters here.)
  const path = pathname.split('/').map(encoded).join('/')
  const query = [...searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort()
  return { url, host, path, query: query.join('&') }
}

function canonicalRequest(
  method: string,
  { path, query }: CanonicalTarget,
  headers: Readonly<Record<string, string>>,
  bodyHash: string,
): string {
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${headers[name]?.trim().replace(/ +/g, ' ')}\n`).join('')
  return [method, path, query, lines, names.join(';'), bodyHash].join('\n')
}

/** Percent-encodes all but the unreserved characters of RFC 3986. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
