import { useQuery } from '@tanstack/react-query'
import { call } from '../../data/client.ts'
import { creditText, numberText, priceText } from '../../data/format.ts'
import { type Me, may, reachesOthers } from '../../data/me.ts'
import { Credits } from '../../design/credits.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import styles from './call-facts.module.css'
import { contentOf, type ShownCall } from './call-record.ts'
import { TEXT } from './text.ts'

const CLASSES = [
  ['input', 'input'],
  ['cacheRead', 'cache_read'],
  ['cacheWrite5Minutes', 'cache_write_5_minutes'],
  ['cacheWrite1Hour', 'cache_write_1_hour'],
  ['output', 'output'],
] as const

/** What was used of each class, at which price, and what it cost together. */
export function Cost({ me, shown }: { me: Me; shown: ShownCall }) {
  const { usage, provenance, reserved } = contentOf(shown)
  const prices = usePrices(me, shown.model)
  const used = CLASSES.flatMap(([name, member]) => {
    const count = usage?.[name]
    if (typeof count !== 'number' || count === 0) return []
    const price = prices?.[member] ?? null
    return [{ name, count, price, micro: price === null ? null : (count * price) / 1_000_000 }]
  })
  const units = Object.entries(usage?.units ?? {}) as Array<[string, number]>
  const total = used.reduce((sum, { micro }) => sum + (micro ?? 0), 0)
  const areThose = units.length > 0 || prices === null || Math.abs(total - shown.cost) <= 1
  const reasoning = usage?.reasoning
  return (
    <Section title={TEXT.cost} note={provenance && TEXT.provenance[provenance]}>
      <Table
        caption={TEXT.cost}
        isNarrow
        heads={[
          { text: TEXT.costHeads.class },
          { text: TEXT.costHeads.tokens, isFigure: true, width: 70 },
          { text: TEXT.costHeads.price, isFigure: true, width: 76 },
          { text: TEXT.costHeads.credits, isFigure: true, width: 78 },
        ]}
      >
        {used.map(({ name, count, price, micro }) => (
          <tr key={name}>
            <td>{TEXT.classes[name]}</td>
            <td data-figure="">{numberText(count)}</td>
            <td data-figure="" className={styles.dim}>
              {price !== null && priceText(price)}
            </td>
            <td data-figure="">{micro !== null && <Credits micro={Math.ceil(micro)} />}</td>
          </tr>
        ))}
        {typeof reasoning === 'number' && reasoning > 0 && (
          <tr className={styles.dim}>
            <td>{TEXT.classes.reasoning}</td>
            <td data-figure="">{numberText(reasoning)}</td>
            <td />
            <td />
          </tr>
        )}
        {units.map(([name, count]) => (
          <tr key={name}>
            <td>{name.replaceAll('_', ' ')}</td>
            <td data-figure="">{numberText(count)}</td>
            <td />
            <td />
          </tr>
        ))}
        <tr className={styles.sum}>
          <td>{TEXT.settledCredits}</td>
          <td />
          <td />
          <td data-figure="">
            <Credits micro={shown.cost} />
          </td>
        </tr>
      </Table>
      <p className={styles.note}>
        {reserved !== undefined &&
          reserved > 0 &&
          TEXT.reserved(creditText(reserved), creditText(Math.max(0, reserved - shown.cost)))}{' '}
        {!areThose && TEXT.otherPrices}
      </p>
    </Section>
  )
}

/** The prices of a model as they are now; null where the user cannot see them. */
function usePrices(me: Me, model: string | null) {
  const organizationId = me.organization.id
  const models = useQuery({
    queryKey: ['prices', organizationId, me.user.id],
    queryFn: () =>
      call('organization-models.list', {
        path: { organizationId },
        query: { limit: 200, ...(!reachesOthers(me, 'models.read') && { user_id: me.user.id }) },
      }),
    enabled: model !== null && may(me, 'models.read'),
    staleTime: 300_000,
  })
  return models.data?.data.find(({ id }) => id === model)?.prices ?? null
}
