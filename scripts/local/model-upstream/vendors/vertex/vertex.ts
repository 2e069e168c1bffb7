import { createHash, createPublicKey, verify } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toRecord, toText } from '../../json-value.ts'
import { answerModel } from '../gemini/gemini.ts'
import { forwardToSelf, recordIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'
import { scriptedAccount } from './scripted-account.ts'

// Google Vertex AI: rawPredict for Claude, its stream and token counts, on top of the scripted messages protocol; Gemini as
// at its own API; and the token service of service accounts.

const MODEL_PATH =
  /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/anthropic\/models\/([^/:]+):(rawPredict|streamRawPredict)$/
const GEMINI_PATH =
  /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/google\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/
const CHAT_PATH = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/endpoints\/openapi\/chat\/completions$/
const VERSION = 'vertex-2023-10-16'
const LIFETIME_SECONDS = 3_599

/** Members that the platform does not have. */
const REFUSED = ['service_tier', 'container', 'mcp_servers', 'inference_geo', 'speed', 'metadata']

/** Answers a request to the scripted Vertex. */
export async function answerVertex(request: VendorRequest): Promise<void> {
  const { incoming, response, path, self } = request
  if (path === '/token') return answerToken(request)
  const gemini = GEMINI_PATH.exec(path)
  const [, project, , model, method] = MODEL_PATH.exec(path) ?? gemini ?? CHAT_PATH.exec(path) ?? []
  if (project === undefined || incoming.method !== 'POST') {
    return sendGoogleError(response, 404, 'NOT_FOUND', 'Requested entity was not found.')
  }
  if (!isAuthorized(incoming, self)) {
    return sendGoogleError(
      response,
      401,
      'UNAUTHENTICATED',
      'Request had invalid authentication credentials. Expected OAuth 2 access token.',
    )
  }
  if (project !== scriptedAccount(self).project_id) {
    return sendGoogleError(response, 403, 'PERMISSION_DENIED', 'Permission denied on resource project.')
  }
  if (model === undefined) return passOn(request, '/v1/chat/completions', chatBody(request))
  if (gemini) return answerModel(request, model, method ?? '', false)
  const { anthropic_version: version, ...body } = toRecord(request.body)
  const fault = faultOf(version, body, model === 'count-tokens')
  if (fault) return sendAnthropicError(response, fault)
  const scripted = { ...body, model: 'scripted-messages' }
  if (model === 'count-tokens') return passOn(request, '/v1/messages/count_tokens', scripted)
  return passOn(request, '/v1/messages', { ...scripted, stream: method === 'streamRawPredict' })
}

function faultOf(version: unknown, body: Record<string, unknown>, isCount: boolean): string | null {
  if (version !== VERSION) return 'anthropic_version: Field required'
  const unknown = REFUSED.find((name) => body[name] !== undefined)
  if (unknown) return `${unknown}: Extra inputs are not permitted`
  if (!isCount && body.model !== undefined) return 'model: Extra inputs are not permitted'
  if (toRecord(body.output_config).format !== undefined) {
    return 'output_config.format: Extra inputs are not permitted'
  }
  return null
}

/** Models of the OpenAI-compatible endpoint are named with their publisher. */
const chatBody = ({ body }: VendorRequest) => ({
  ...body,
  model: toText(body?.model).replace(/^[^/]+\//, ''),
})

/** Forwards a request to the protocol of its body, with the betas of its header. */
function passOn(request: VendorRequest, path: string, body: Record<string, unknown>): Promise<void> {
  const betas = toText(request.incoming.headers['anthropic-beta'])
  const headers = { 'anthropic-version': '2023-06-01', ...(betas !== '' && { 'anthropic-beta': betas }) }
  return forwardToSelf(request, path, body, headers)
}

/** Tokens tell their own time, so that a restarted server knows them. */
const tokenIssued = (at: number, self: string): string =>
  `ya29.scripted-${at}-${createHash('sha256')
    .update(`${at} ${scriptedAccount(self).private_key}`)
    .digest('hex')}`

function isAuthorized({ headers }: IncomingMessage, self: string): boolean {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
  const at = Number(/^ya29\.scripted-(\d+)-/.exec(token)?.[1] ?? Number.NaN)
  return token === tokenIssued(at, self) && Date.now() < at + LIFETIME_SECONDS * 1_000
}

function answerToken({ raw, response, self }: VendorRequest): void {
  const refusal = refusalOf(new URLSearchParams(raw.toString('utf8')), self)
  if (refusal) sendVendorJson(response, 400, { error: refusal[0], error_description: refusal[1] })
  else {
    const token = tokenIssued(Date.now(), self)
    sendVendorJson(response, 200, { access_token: token, expires_in: LIFETIME_SECONDS, token_type: 'Bearer' })
  }
}

/** https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests */
function refusalOf(form: URLSearchParams, self: string): [error: string, description: string] | null {
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
    return ['unsupported_grant_type', 'Invalid grant_type']
  }
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const { alg } = toRecord(recordIn(Buffer.from(header, 'base64url')))
  const { iss, aud, scope, iat, exp } = toRecord(recordIn(Buffer.from(claims, 'base64url')))
  const account = scriptedAccount(self)
  const publicKey = createPublicKey(account.private_key)
  const signed = Buffer.from(`${header}.${claims}`)
  const isSigned = verify('sha256', signed, publicKey, Buffer.from(signature, 'base64url'))
  if (alg !== 'RS256' || !isSigned || iss !== account.client_email) {
    return ['invalid_grant', 'Invalid JWT Signature.']
  }
  const now = Date.now() / 1_000
  if (!(Math.abs(Number(iat) - now) < 300 && Number(exp) > now && Number(exp) <= Number(iat) + 3_600)) {
    return ['invalid_grant', 'Invalid JWT: Token must be a short-lived token (60 minutes).']
  }
  if (aud !== account.token_uri || scope !== 'https://www.googleapis.com/auth/cloud-platform') {
    return ['invalid_scope', 'Invalid audience or scope.']
  }
  return null
}

const sendAnthropicError = (response: ServerResponse, message: string): void =>
  sendVendorJson(response, 400, { type: 'error', error: { type: 'invalid_request_error', message } })

const sendGoogleError = (response: ServerResponse, code: number, status: string, message: string): void =>
  sendVendorJson(response, code, { error: { code, message, status } })
