import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { drained, type Slices, sortedInSlices } from '../../lib/slices.ts'
import { type BodyMembers, type ChangedMembers, memberEdits, takesMember } from './body-members.ts'
import type { Protocol } from './protocol.ts'
import type { RequestOutline } from './request-outline.ts'

const encoder = new TextEncoder()
const UNCHANGED: ReturnType<typeof memberEdits> = { body: { removed: new Set(), edits: [] }, dropped: [] }

/** The model that an edited request is sent to. */
interface EditTarget {
  upstreamModel: string
  /** Capabilities of the model; empty when they are unknown. */
  capabilities: readonly string[]
  /** Blocks of thinking with edited text, as `<message>.<block>`. */
  changedThinking?: ReadonlySet<string>
  /** The members that its provider takes; absent for those of the protocol. */
  bodyMembers?: BodyMembers | null
}

/**
 * The only edits of a request whose upstream has the caller's protocol: removed members, the upstream's model id, usage
 * requested on streams, a limit for tools that run at the provider, the removal of a JSON mode that the model does not
 * have, and the members that the provider takes in another form or not at all.
 * @throws ApiError invalid_request naming a member that the provider does not take and that must not be lost.
 */
export function* requestEdits(
  outline: RequestOutline,
  protocol: Protocol,
  target: EditTarget,
): Slices<ChangedMembers<ByteEdit[]>> {
  const { upstreamModel, bodyMembers } = target
  const removals = new Set(protocol.removals)
  if (outline.jsonObject && lacks(target, 'json_object')) removals.add('response_format')
  const changed = bodyMembers ? memberEdits(outline, bodyMembers, (name) => removals.has(name)) : UNCHANGED
  const isRemoved = (name: string) => removals.has(name) || changed.body.removed.has(name)
  const cuts = removalEdits(outline.members, ({ name }) => isRemoved(name))
  const edits = [...(protocol.ownEdits ? yield* protocol.ownEdits(outline.body, target.changedThinking) : [])]
  edits.push(...outline.toolLimits.edits)
  const model = outline.members.find((member) => member.name === 'model')
  if (model && upstreamModel !== outline.model) {
    edits.push({
      start: model.start,
      end: model.end,
      replacement: encoder.encode(JSON.stringify(upstreamModel)),
    })
  }
  const kept = changed.body.removed.size > 0 ? yield* outsideOfInSlices(cuts, edits) : edits
  const takesOptions = takesMember(bodyMembers, 'stream_options')
  const asksUsage = outline.stream && protocol.usageIsOptional && !outline.usageRequested && takesOptions
  // An insertion before the first member stays where that member is cut out.
  const usage = asksUsage ? usageEdits(outline) : []
  return { body: [...changed.body.edits, ...cuts, ...kept, ...usage], dropped: changed.dropped }
}

/** Interface, JSON mode, case 3: accepted, and without effect. A model of unknown capabilities is sent the member. */
const lacks = ({ capabilities }: EditTarget, word: string) =>
  capabilities.length > 0 && !capabilities.includes(word)

/**
 * Cuts members or elements out, each with one comma: the one after it, or for the last ones the one before.
 * @param places of all members or elements, in their order.
 */
export function removalEdits<Place extends { memberStart: number; end: number }>(
  places: readonly Place[],
  isRemoved: (place: Place) => boolean,
): ByteEdit[] {
  const lastKept = places.findLastIndex((place) => !isRemoved(place))
  const edits = places.slice(0, lastKept + 1).flatMap((place, index): ByteEdit[] => {
    const next = places[index + 1]
    return next && isRemoved(place)
      ? [{ start: place.memberStart, end: next.memberStart, replacement: null }]
      : []
  })
  const last = places[places.length - 1]
  if (last && lastKept < places.length - 1) {
    const start = places[lastKept]?.end ?? places[0]?.memberStart ?? 0
    edits.push({ start, end: last.end, replacement: null })
  }
  return edits
}

/** Without `include_usage` a chat stream reports no usage at all, and every call is metered. */
function usageEdits({ body, members }: RequestOutline): ByteEdit[] {
  const options = members.find((member) => member.name === 'stream_options')
  if (!options) return [insertion(members[0]?.memberStart ?? 1, '"stream_options":{"include_usage":true},')]
  const { start, end } = options
  // The member is null.
  if (options.kind !== 'object')
    return [{ start, end, replacement: encoder.encode('{"include_usage":true}') }]
  const edits: ByteEdit[] = []
  let isEmpty = true
  scanJson(body.subarray(start, end), {
    value(path, _kind, from, to) {
      if (path.length === 1) isEmpty = false
      if (path[0] !== 'include_usage') return
      edits.push({ start: start + from, end: start + to, replacement: encoder.encode('true') })
    },
  })
  return edits.length > 0 ? edits : [insertion(start + 1, `"include_usage":true${isEmpty ? '' : ','}`)]
}

const insertion = (at: number, text: string): ByteEdit => ({
  start: at,
  end: at,
  replacement: encoder.encode(text),
})

/** The edits of texts that lie outside the cuts. Neither list overlaps within itself. */
export const outsideOf = (cuts: readonly ByteEdit[], texts: ByteEdit[]): ByteEdit[] =>
  drained(outsideOfInSlices(cuts, texts))

/** `outsideOf` in slices. */
export function* outsideOfInSlices(cuts: readonly ByteEdit[], texts: ByteEdit[]): Slices<ByteEdit[]> {
  if (texts.length === 0 || cuts.length === 0) return texts
  const byStart = (left: ByteEdit, right: ByteEdit) => left.start - right.start
  const ordered = [...cuts].sort(byStart)
  let next = 0
  return (yield* sortedInSlices(texts, byStart)).filter((text) => {
    while ((ordered[next]?.end ?? Number.POSITIVE_INFINITY) < text.end) next++
    return text.start < (ordered[next]?.start ?? Number.POSITIVE_INFINITY)
  })
}
