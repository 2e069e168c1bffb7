import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { includableMembers } from '../items/included-members.ts'
import type { ReasoningSecret } from '../items/reasoning-seal.ts'
import { openReasoning, sealReasoning } from '../items/reasoning-seal.ts'
import { redactedResponse, sealedMemberOf } from '../items/redaction.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseHead } from '../model/response-head.ts'
import { initialResponse } from '../model/response-members.ts'
import type { ContextItem, Members, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { approvalIdOf } from '../tools/integrations/approvals.ts'
import type { ToolRules } from '../tools/tool-rules.ts'
import { ResponseEmitter } from './emitter.ts'
import { EventWriter } from './event-writer.ts'
import { replayResponse } from './replay.ts'

type Keys = { configuration: Pick<ResponseDeps['configuration'], 'VAULT_KEYS' | 'KEY_PEPPERS'> }

/** The emitter of a new response, which redacts under the policy what the response repeats of its request. */
export async function newEmitter(
  deps: Keys,
  head: ResponseHead,
  settings: ResponseSettings,
  tools: ToolRules,
  log: EventLog,
  policy: CallPolicy,
): Promise<ResponseEmitter> {
  return new ResponseEmitter({
    ...sharedOptions(deps, head.owner, settings, tools),
    writer: new EventWriter(0, (event) => log.append(event)),
    response: await redactedResponse(policy, initialResponse(settings, tools.shown, head)),
  })
}

/**
 * The emitter of a response that continues after a restart.
 * @param items of its turns, which have the reasoning sealed.
 */
export function resumedEmitter(
  deps: Keys,
  { owner }: ResponseHead,
  settings: ResponseSettings,
  tools: ToolRules,
  log: EventLog,
  items: readonly ContextItem[],
): ResponseEmitter {
  const writer = new EventWriter(log.lastSequence, (event) => log.append(event))
  const { response, items: output } = replayResponse(log.payloads(), writer)
  return new ResponseEmitter({
    ...sharedOptions(deps, owner, settings, tools),
    writer,
    response,
    items: output,
    secrets: reasoningSecrets(deps, owner, items),
    excluded: storedExcluded(items),
  })
}

/** Members that callers get on request only. The output has those that this caller has requested. */
function storedExcluded(items: readonly ContextItem[]): Map<string, Members> {
  const stored = new Map<string, Members>()
  for (const { id, type, bytes } of items) {
    const { includable, sealedMember } = ITEM_TYPES.get(type) ?? {}
    if (includable && !sealedMember) stored.set(id, includableMembers(JSON.parse(decoder.decode(bytes))))
  }
  return stored
}

/** The caller gets sealed reasoning if `include` requests it. */
function sharedOptions(
  { configuration }: Keys,
  owner: Owner,
  settings: ResponseSettings,
  { nameOf, purposeOf }: ToolRules,
) {
  const includes = new Set(settings.include)
  const seal = (secret: ReasoningSecret) =>
    includes.has('reasoning.encrypted_content')
      ? sealReasoning(configuration.VAULT_KEYS, owner, secret)
      : null
  const approvalId = (members: Members, json: string) =>
    approvalIdOf(configuration.KEY_PEPPERS, owner, members, json)
  return { nameOf, purposeOf, seal, includes, approvalIdOf: approvalId }
}

function reasoningSecrets(
  { configuration }: Keys,
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
