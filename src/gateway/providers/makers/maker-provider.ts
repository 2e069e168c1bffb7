import type { BodyMembers } from '../../protocols/body-members.ts'
import { SECRET_ONLY } from '../credential.ts'
import { fixedHeaderTransport } from '../fixed-header-transport.ts'
import { ROUTING_OF_PROXIES } from '../routing-members.ts'
import type { ProviderKindDefinition } from '../transport.ts'
import { MAKERS, type Maker, type MakerKind } from './makers.ts'

const kinds = Object.keys(MAKERS) as MakerKind[]

/** The kinds of provider that are a maker's preset: they need a key and no address. */
export const MAKER_KINDS = Object.fromEntries(
  kinds.map((kind) => [kind, makerProvider(MAKERS[kind])]),
) as Readonly<Record<MakerKind, ProviderKindDefinition>>

function makerProvider(maker: Maker): ProviderKindDefinition {
  return {
    credential: maker.isKeyless ? { secret: { secret: true, required: false } } : SECRET_ONLY,
    routingMembers: new Set(ROUTING_OF_PROXIES),
    defaultBaseUrl: () => maker.baseUrl,
    connect(baseUrl, { secret }, { allowedMembers }) {
      const rules = rulesOf(maker, allowedMembers)
      const signed = { ...rules, messages: { ...rules.messages, thoughtSignatures: true as const } }
      return {
        ...fixedHeaderTransport({
          baseUrl,
          paths: { chat_completions: '/chat/completions', ...maker.paths },
          headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` },
          forwarded: {},
        }),
        bodyMembers: ({ upstreamModel }) => (maker.signedCalls?.test(upstreamModel) ? signed : rules),
        withheld: () => maker.withheld ?? [],
        ...(maker.repeatsReasoning && { repeatsReasoning: true }),
      }
    },
  }
}

/** @param allowed members that the maker takes by the operator's setting. */
function rulesOf(maker: Maker, allowed: readonly string[]): BodyMembers {
  const { taken, dropped = [], moved = [], renamed = {}, replaced = {}, messages } = maker
  const isLeft = (name: string) => !allowed.includes(name)
  const ruled = <Value>(rules: Readonly<Record<string, Value>>) =>
    Object.fromEntries(Object.entries(rules).filter(([name]) => isLeft(name)))
  return {
    ...(taken && { taken: new Set([...taken, ...allowed]) }),
    dropped: new Set(dropped.filter(isLeft)),
    moved: new Set(moved.filter(isLeft)),
    renamed: ruled(renamed),
    replaced: ruled(replaced),
    ...(messages && { messages }),
  }
}
