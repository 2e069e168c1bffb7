import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ToolRules } from '../engine/tool-rules.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import { openReasoning, sealReasoning } from '../items/reasoning-seal.ts'
import { redactedResponse, sealedMemberOf } from '../items/redaction.ts'
import type { ResponseHead } from '../object/response-head.ts'
import { initialResponse } from '../object/response-members.ts'
import type { ContextItem, Owner } from '../types.ts'
import { ResponseEmitter } from './emitter.ts'
import type { EmittedEvent } from './event-writer.ts'

export interface EmissionDeps {
  configuration: { VAULT_KEYS: KeyRing }
}

/** What every emitter of a response is made of. */
export interface Emission {
  settings: ResponseSettings
  tools: ToolRules
  emit: (event: EmittedEvent) => void
}

/** The emitter of a response that begins. What it repeats of its request is redacted under the policy. */
export function newEmitter(
  deps: EmissionDeps,
  { responseId, owner, createdAt }: ResponseHead,
  emission: Emission,
  policy: CallPolicy,
  conversationId: string | null,
): ResponseEmitter {
  const { settings } = emission
  const response = initialResponse(settings, {
    id: responseId,
    createdSeconds: Math.floor(createdAt / 1000),
    conversationId,
    store: settings.store !== false,
    tools: settings.tools ?? [],
  })
  const options = optionsOf(deps, owner, emission)
  return new ResponseEmitter({ ...options, response: redactedResponse(policy, response), lastSequence: 0 })
}

/**
 * The emitter of a response that goes on after a restart.
 * @param payloads of all its events. @param items of its turns, in which the reasoning of earlier ones is sealed.
 */
export function resumedEmitter(
  deps: EmissionDeps,
  { owner }: ResponseHead,
  emission: Emission,
  told: { payloads: Iterable<string>; lastSequence: number },
  items: readonly ContextItem[],
): ResponseEmitter {
  return new ResponseEmitter({
    ...optionsOf(deps, owner, emission),
    response: told.payloads,
    lastSequence: told.lastSequence,
    secrets: secretsOf(deps, owner, items),
  })
}

/** The caller sees sealed reasoning when `include` asks for it. */
function optionsOf({ configuration }: EmissionDeps, owner: Owner, { settings, tools, emit }: Emission) {
  const asked = settings.include?.includes('reasoning.encrypted_content') ?? false
  const seal = (secret: ReasoningSecret) => sealReasoning(configuration.VAULT_KEYS, owner, secret)
  const { nameOf, purposeOf } = tools
  return { emit, nameOf, purposeOf, seal: asked ? seal : () => null }
}

function secretsOf(
  { configuration }: EmissionDeps,
  owner: Owner,
  items: readonly ContextItem[],
): Map<string, ReasoningSecret> {
  const secrets = new Map<string, ReasoningSecret>()
  for (const { id, type, bytes } of items) {
    const member = sealedMemberOf({ type })
    if (member === undefined) continue
    const sealed: unknown = JSON.parse(decoder.decode(bytes))[member]
    const secret = typeof sealed === 'string' ? openReasoning(configuration.VAULT_KEYS, owner, sealed) : null
    if (secret) secrets.set(id, secret)
  }
  return secrets
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
