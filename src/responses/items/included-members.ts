import type { Includes } from '../../wire/response-queries.ts'
import type { Members } from '../model/types.ts'
import type { IncludableMember } from './types/item-type.ts'
import { ITEM_TYPES } from './types/item-types.ts'

/** An item with only those of its includable members that `include` requests. */
export function withIncluded<Item extends object>(item: Item, includes: Includes): Item {
  const members = item as Members
  const excluded = includableOf(item).filter(
    ({ path, include }) => !includes.has(include) && hasMember(members, path),
  )
  return excluded.reduce<Members>((rest, { path }) => without(rest, path), members) as Item
}

/** Whether an item lacks an includable member that `include` requests. */
export const lacksIncluded = (item: object, includes: Includes): boolean =>
  includableOf(item).some(({ path, include }) => includes.has(include) && !hasMember(item as Members, path))

/** The members of an item that differ when it has only what `include` requests: they are stored apart from its events. */
export function excludedMembers(item: Members, includes: Includes): Members {
  const included = withIncluded(item, includes)
  return Object.fromEntries(Object.entries(item).filter(([name, value]) => included[name] !== value))
}

/** The includable members of an item, as they are. */
export function includableMembers(item: Members): Members {
  const names = new Set(includableOf(item).map(({ path: [name] }) => name))
  return Object.fromEntries(Object.entries(item).filter(([name]) => names.has(name)))
}

const includableOf = (item: object): readonly IncludableMember[] =>
  ('type' in item && ITEM_TYPES.get(String(item.type))?.includable) || []

function hasMember(item: Members, [name, inner]: IncludableMember['path']): boolean {
  const value = item[name]
  if (inner === undefined) return name in item
  return typeof value === 'object' && value !== null && inner in value
}

function without(item: Members, [name, inner]: IncludableMember['path']): Members {
  const { [name]: value, ...rest } = item
  if (inner === undefined) return rest
  const { [inner]: _, ...others } = value as Members
  return { ...item, [name]: others }
}
