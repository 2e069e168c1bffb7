import { toText } from '../../json-value.ts'
import { forwardToSelf, sendVendorJson, type VendorRequest } from '../vendor-request.ts'

// Claude in Microsoft Foundry, on top of the scripted messages protocol.

export const SCRIPTED_FOUNDRY = { key: 'scripted-foundry-key', deployment: 'claude-deployment' }

const PATHS = new Set(['/anthropic/v1/messages', '/anthropic/v1/messages/count_tokens'])

/** Answers a request to the scripted Foundry. */
export async function answerFoundry(request: VendorRequest): Promise<void> {
  const { incoming, response, path, body } = request
  if (!PATHS.has(path)) return refuse(response, 404, '404', 'Resource not found')
  if (incoming.headers['x-api-key'] !== SCRIPTED_FOUNDRY.key) {
    return refuse(
      response,
      401,
      '401',
      'Access denied due to invalid subscription key or wrong API endpoint.',
    )
  }
  if (toText(body?.model) !== SCRIPTED_FOUNDRY.deployment) {
    return refuse(response, 404, 'DeploymentNotFound', 'The API deployment for this resource does not exist.')
  }
  const names = ['anthropic-version', 'anthropic-beta'].filter(
    (name) => toText(incoming.headers[name]) !== '',
  )
  const headers = Object.fromEntries(names.map((name) => [name, toText(incoming.headers[name])]))
  const inner = { ...body, model: 'scripted-messages' }
  return forwardToSelf(request, path.slice('/anthropic'.length), inner, headers)
}

const refuse = (response: VendorRequest['response'], status: number, code: string, message: string) =>
  sendVendorJson(response, status, { error: { code, message } })
