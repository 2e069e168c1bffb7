import type { Verdict } from './features.ts'
import { CONTENTS, contentOf, MEMBER_SAMPLES, sampleOf } from './vendor-samples.ts'
import { contentVerdict, memberVerdict, VENDORS, type Vendor, type VendorCaller } from './vendors.ts'

/** A row of a table of vendors: the verdict of each vendor, in their order. */
export interface VendorRow {
  name: string
  verdicts: Verdict[]
}

/** What becomes of every member of a surface at every vendor. */
export const memberRows = (caller: VendorCaller): VendorRow[] =>
  Object.keys(MEMBER_SAMPLES[caller]).map((member) => ({
    name: `\`${member}\``,
    verdicts: VENDORS.map((vendor) => memberVerdict(vendor, caller, sampleOf(caller, member))),
  }))

/** What becomes of the contents of messages at every vendor. */
export const contentRows = (caller: 'chat_completions' | 'messages'): VendorRow[] =>
  CONTENTS.flatMap((content) => {
    const said = contentOf(content, caller)
    if (said === null) return []
    return [{ name: content.name, verdicts: VENDORS.map((vendor) => contentVerdict(vendor, caller, said)) }]
  })

/** Vendors that treat all rows alike share a column. @returns their titles, and the index of one of them. */
export function vendorColumns(rows: readonly VendorRow[]): Array<{ title: string; index: number }> {
  const columns = new Map<string, { vendors: Vendor[]; index: number }>()
  for (const [index, vendor] of VENDORS.entries()) {
    const key = rows.map(({ verdicts }) => verdicts[index]).join()
    const known = columns.get(key)
    if (known) known.vendors.push(vendor)
    else columns.set(key, { vendors: [vendor], index })
  }
  return [...columns.values()].map(({ vendors, index }) => ({
    title: vendors.map(({ title }) => title).join(', '),
    index,
  }))
}
