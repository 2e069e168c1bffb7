import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Sha256 } from '@aws-crypto/sha256-js'
import { SignatureV4 } from '@smithy/signature-v4'
import type { AwsFault } from './faults.ts'
import { SCRIPTED_AWS } from './scripted-aws.ts'

/** Recomputes the signature of a request by Amazon's own library. @returns a fault where it is another one. */
export async function authorizationFault(request: IncomingMessage, body: Buffer): Promise<AwsFault | null> {
  const authorization = request.headers.authorization ?? ''
  if (authorization === `Bearer ${SCRIPTED_AWS.apiKey}`) return null
  const [, keyId, date, region, service, names] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$/.exec(
      authorization,
    ) ?? []
  if (keyId === undefined || region === undefined || names === undefined) {
    return fault(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token')
  }
  if (keyId !== SCRIPTED_AWS.accessKeyId) {
    return fault(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.')
  }
  if (region !== SCRIPTED_AWS.region || service !== 'bedrock') {
    return fault(403, 'InvalidSignatureException', `Credential should be scoped to a valid region.`)
  }
  const time = String(request.headers['x-amz-date'])
  const signingDate = new Date(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
  if (!time.startsWith(String(date)) || Math.abs(Date.now() - signingDate.getTime()) > 300_000) {
    return fault(403, 'InvalidSignatureException', 'Signature expired.')
  }
  const wanted = await signed(request, body, names.split(';'), signingDate)
  const isEqual =
    wanted.length === authorization.length && timingSafeEqual(Buffer.from(wanted), Buffer.from(authorization))
  return isEqual
    ? null
    : fault(
        403,
        'InvalidSignatureException',
        'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.',
      )
}

async function signed(
  { method = '', url = '', headers }: IncomingMessage,
  body: Buffer,
  names: readonly string[],
  signingDate: Date,
): Promise<string> {
  const signer = new SignatureV4({
    service: 'bedrock',
    region: SCRIPTED_AWS.region,
    credentials: { accessKeyId: SCRIPTED_AWS.accessKeyId, secretAccessKey: SCRIPTED_AWS.secretAccessKey },
    sha256: Sha256,
    uriEscapePath: true,
  })
  const { headers: result } = await signer.sign(
    {
      method,
      protocol: 'http:',
      hostname: '127.0.0.1',
      path: url.split('?')[0] ?? '',
      query: {},
      headers: Object.fromEntries(names.map((name) => [name, String(headers[name] ?? '')])),
      body,
    },
    { signingDate, signableHeaders: new Set(names) },
  )
  return result.authorization ?? ''
}

const fault = (status: number, type: string, message: string): AwsFault => ({ status, type, message })
