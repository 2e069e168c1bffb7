import { useQuery } from '@tanstack/react-query'
import { call } from '../data/client.ts'
import { creditText, roundCreditText } from '../data/format.ts'
import { type Me, may } from '../data/me.ts'
import { useSpendADay } from '../data/spend.ts'
import { TEXT } from './text.ts'

/** The credits of the organization, and for how long they last, for those who may read them. */
export function Balance({ me }: { me: Me }) {
  const organizationId = me.organization.id
  const isShown = may(me, 'credits.read')
  const credits = useQuery({
    queryKey: ['credits', organizationId],
    queryFn: () => call('credits.show', { path: { organizationId }, query: { limit: 1 } }),
    enabled: isShown,
    refetchInterval: 60_000,
  })
  const aDay = useSpendADay(me, isShown)
  if (!credits.data) return null
  const { available, reserved } = credits.data
  const amounts: Array<[string, number]> = [
    [TEXT.available, available],
    [TEXT.reserved, reserved],
  ]
  return (
    <dl>
      {amounts.map(([name, micro]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={creditText(micro)}>{roundCreditText(micro)}</dd>
        </div>
      ))}
      {aDay !== null && aDay > 0 && (
        <div>
          <dt>{TEXT.runway}</dt>
          <dd>{TEXT.days(Math.floor(available / aDay))}</dd>
        </div>
      )}
    </dl>
  )
}
