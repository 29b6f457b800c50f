-- SPDX-License-Identifier: BSD-2-Clause
-- Wireshark's dissector of the datagrams that weft exchanges between hosts (version 7 of the
-- format, hw/udp/internal/wire). Put it into ~/.local/lib/wireshark/plugins, or run
--
--	tshark -X lua_script:weft.lua -Y weft
--
-- Datagrams are found by their form, whatever their ports; "Decode as" takes them, too. What an
-- interface with segmentation offload hands to a capture in one piece is parted into packets again.

local VERSION = 7
local HEADER = 16
local weft = Proto("weft", "weft datagrams")

local types = { [1] = "Init", [2] = "Retry", [3] = "Accept", [4] = "Reset", [5] = "Data", [6] = "Moved" }
local sizes = { [1] = 112, [2] = 96, [3] = 112, [4] = HEADER, [6] = 64 }
local kinds = { [0] = "Pad", [1] = "Ack", [2] = "Stream", [3] = "Ping", [4] = "Close", [5] = "Put", [6] = "Get",
	[7] = "Data", [8] = "Refuse", [9] = "Probe" }
local reasons = { [0] = "normal", [1] = "protocol error", [2] = "given up" }

local f = {
	type = ProtoField.uint8("weft.type", "Type", base.DEC, types, 0x0f),
	stripe = ProtoField.uint8("weft.stripe", "Receiver's stripe"),
	flags = ProtoField.uint8("weft.flags", "Flags", base.HEX),
	ack_now = ProtoField.bool("weft.flags.ack_now", "Acknowledge now", 8, nil, 0x01),
	blocked = ProtoField.bool("weft.flags.blocked", "Window is full", 8, nil, 0x02),
	sealed = ProtoField.bool("weft.flags.sealed", "Encrypted", 8, nil, 0x04),
	source = ProtoField.uint8("weft.source", "Sender's stripe"),
	cid = ProtoField.uint64("weft.cid", "Receiver's connection", base.HEX),
	number = ProtoField.uint32("weft.number", "Packet number (lower 32 bits)"),
	version = ProtoField.uint8("weft.version", "Version"),
	auth = ProtoField.bool("weft.handshake.auth", "Authorisation key", 8, nil, 0x01),
	has_cookie = ProtoField.bool("weft.handshake.has_cookie", "Has a cookie", 8, nil, 0x02),
	client = ProtoField.uint64("weft.handshake.client", "Client's connection", base.HEX),
	server = ProtoField.uint64("weft.handshake.server", "Server's connection", base.HEX),
	nonce = ProtoField.bytes("weft.handshake.nonce", "Nonce"),
	window = ProtoField.uint64("weft.handshake.window", "Stream window (bytes)"),
	max_message = ProtoField.uint32("weft.handshake.max_message", "Largest record (bytes)"),
	max_packet = ProtoField.uint16("weft.handshake.max_packet", "Largest datagram (bytes)"),
	own_stripe = ProtoField.uint8("weft.handshake.stripe", "Own stripe"),
	buffer = ProtoField.uint8("weft.handshake.buffer", "Logarithm of socket buffers"),
	cookie = ProtoField.bytes("weft.handshake.cookie", "Cookie"),
	wanted = ProtoField.uint8("weft.handshake.wanted", "Interface asked for"),
	role = ProtoField.uint8("weft.handshake.interface", "Client's interface"),
	port = ProtoField.uint16("weft.handshake.port", "Port"),
	mac = ProtoField.bytes("weft.handshake.mac", "MAC"),
	frame = ProtoField.uint8("weft.frame", "Frame", base.DEC, kinds),
	payload = ProtoField.bytes("weft.payload", "Payload"),
	offset = ProtoField.uint32("weft.stream.offset", "Stream offset (lower 32 bits)"),
	length = ProtoField.uint32("weft.length", "Payload bytes"),
	op = ProtoField.uint32("weft.op", "Operation"),
	key = ProtoField.uint64("weft.key", "Key", base.HEX),
	addr = ProtoField.uint64("weft.addr", "Address", base.HEX),
	get_length = ProtoField.uint64("weft.get.length", "Bytes asked for"),
	data_offset = ProtoField.uint64("weft.data.offset", "Offset in the operation"),
	close_reason = ProtoField.uint8("weft.close.reason", "Reason", base.DEC, reasons),
	close_end = ProtoField.uint64("weft.close.end", "Stream's end"),
	refuse_reason = ProtoField.uint8("weft.refuse.reason", "Reason", base.DEC, { [1] = "no such memory" }),
	ack_largest = ProtoField.uint32("weft.ack.largest", "Largest number (lower 32 bits)"),
	ack_first = ProtoField.uint16("weft.ack.first", "First range, less 1"),
	ack_delay = ProtoField.uint32("weft.ack.delay", "Delay (ns)"),
	ack_arrived = ProtoField.uint32("weft.ack.arrived", "Arrival of the largest number (ns, the receiver's clock, modulo 2^32)"),
	ack_open = ProtoField.bool("weft.ack.open", "Eager payloads welcome", 8, nil, 0x20),
	ack_limit = ProtoField.uint32("weft.ack.limit", "Stream limit (lower 32 bits)"),
	ack_gap = ProtoField.uint32("weft.ack.gap", "Missing numbers, less 1"),
	ack_range = ProtoField.uint32("weft.ack.range", "Range, less 1"),
	ack_marked = ProtoField.uint32("weft.ack.marked", "Marked packets (ECN)"),
	seal = ProtoField.bytes("weft.sealed", "Encrypted frames and tag"),
}
weft.fields = f
local bad = ProtoExpert.new("weft.bad", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
weft.experts = { bad }

-- limits adds the 16 bytes with what a side takes.
local function limits(t, b)
	t:add_le(f.window, b(0, 8))
	t:add_le(f.max_message, b(8, 4))
	t:add_le(f.max_packet, b(12, 2))
	t:add(f.own_stripe, b(14, 1))
	t:add(f.buffer, b(15, 1))
end

local function handshake(t, b, kind)
	t:add(f.version, b(2, 1))
	t:add(f.auth, b(3, 1))
	t:add_le(f.client, b(8, 8))
	t:add(f.nonce, b(16, 16))
	if kind == 1 then
		t:add(f.has_cookie, b(3, 1))
		limits(t, b(32, 16))
		t:add(f.cookie, b(48, 32))
		t:add(f.wanted, b(80, 1))
		t:add(f.role, b(81, 1))
		t:add_le(f.port, b(82, 2))
	elseif kind == 2 then
		t:add(f.cookie, b(32, 32))
	elseif kind == 3 then
		limits(t, b(32, 16))
		t:add(f.nonce, b(48, 16))
		t:add_le(f.server, b(64, 8))
	else
		t:add_le(f.port, b(32, 2))
	end
	t:add(f.mac, b(b:len() - 16, 16))
end

-- ack adds an Ack frame and gives its size, nil if it is cut.
local function ack(t, b)
	if b:len() < 16 then return nil end
	local head = b(1, 1):uint()
	local ranges = head % 32
	local limit, marked = head >= 128, math.floor(head / 64) % 2 == 1
	local size = 16 + 8 * ranges + (limit and 4 or 0) + (marked and 4 or 0)
	if b:len() < size then return nil end
	t:add(f.ack_open, b(1, 1))
	t:add_le(f.ack_first, b(2, 2))
	t:add_le(f.ack_delay, b(4, 4))
	t:add_le(f.ack_largest, b(8, 4))
	t:add_le(f.ack_arrived, b(12, 4))
	local at = 16
	if limit then
		t:add_le(f.ack_limit, b(at, 4))
		at = at + 4
	end
	for _ = 1, ranges do
		t:add_le(f.ack_gap, b(at, 4))
		t:add_le(f.ack_range, b(at + 4, 4))
		at = at + 8
	end
	if marked then t:add_le(f.ack_marked, b(at, 4)) end
	return size
end

-- Headers of the frames that carry a length in bytes 2 and 3, and of those that carry none.
local counted = { [5] = 24, [7] = 16, [9] = 4 }
local fixed = { [3] = 4, [4] = 16, [6] = 32, [8] = 8 }

-- frame adds the first frame of b and gives its size, nil if it is malformed.
local function frame(tree, b)
	local kind = b(0, 1):uint()
	local t = tree:add(f.frame, b(0, 1))
	if kind == 0 then return b:len(), kind end
	if kind == 1 then return ack(t, b), kind end
	if kind == 2 then
		if b:len() <= 5 then return nil end
		t:add_le(f.offset, b(1, 4))
		t:add(f.length, b(5), b:len() - 5):set_generated()
		t:add(f.payload, b(5))
		return b:len(), kind
	end
	local head = counted[kind] or fixed[kind]
	if not head or b:len() < head then return nil end
	if kind == 4 then
		t:add(f.close_reason, b(1, 1))
		t:add_le(f.close_end, b(8, 8))
	elseif kind ~= 3 and kind ~= 9 then
		t:add_le(f.op, b(4, 4))
	end
	if kind == 5 or kind == 6 then
		t:add_le(f.key, b(8, 8))
		t:add_le(f.addr, b(16, 8))
	end
	if kind == 6 then t:add_le(f.get_length, b(24, 8)) end
	if kind == 7 then t:add_le(f.data_offset, b(8, 8)) end
	if kind == 8 then t:add(f.refuse_reason, b(1, 1)) end
	if fixed[kind] then return head, kind end
	local n = b(2, 2):le_uint()
	if n == 0 or head + n > b:len() then return nil end
	t:add_le(f.length, b(2, 2))
	t:add(f.payload, b(head, n))
	return head + n, kind
end

-- packet_size gives where the first Data packet of b ends: where the next of its train begins,
-- with the same beginning and the next number, or the one behind it, because senders leave some
-- out, or with b.
local function packet_size(b)
	if b:len() < 2 * HEADER then return b:len() end
	local raw = b:raw()
	local cid, number = raw:sub(5, 12), b(12, 4):le_uint()
	local at = HEADER + 1
	while true do
		at = raw:find(cid, at + 4, true)
		if not at or at + 11 > #raw then return #raw end
		local start = at - 5 -- of the header, from 0
		if start >= HEADER and raw:byte(start + 1) == 0xb5 and raw:byte(start + 2) == raw:byte(2) then
			local ahead = (b(start + 12, 4):le_uint() - number) % 4294967296
			if ahead == 1 or ahead == 2 then return start end
		end
	end
end

local function data(t, b, names)
	local flags = t:add(f.flags, b(2, 1))
	flags:add(f.ack_now, b(2, 1))
	flags:add(f.blocked, b(2, 1))
	flags:add(f.sealed, b(2, 1))
	t:add(f.source, b(3, 1))
	t:add_le(f.cid, b(4, 8))
	t:add_le(f.number, b(12, 4))
	if math.floor(b(2, 1):uint() / 4) % 2 == 1 then
		if b:len() > HEADER then t:add(f.seal, b(HEADER)) end
		names["encrypted"] = true
		return
	end
	local at = HEADER
	while at < b:len() do
		local size, kind = frame(t, b(at))
		if not size then
			t:add_proto_expert_info(bad)
			return
		end
		names[kinds[kind]] = true
		at = at + size
	end
end

-- ours tells whether a datagram has the form of weft's.
local function ours(b)
	if b:len() < HEADER then return false end
	local first = b(0, 1):uint()
	local kind = first - 0xb0
	if not types[kind] then return false end
	if kind == 5 then
		local flags = b(2, 1):uint()
		return flags < 8 and (b:len() == HEADER or flags >= 4 or kinds[b(HEADER, 1):uint()] ~= nil)
	end
	if b:len() ~= sizes[kind] then return false end
	return kind == 4 or b(2, 1):uint() == VERSION
end

function weft.dissector(tvb, pinfo, root)
	local b = tvb()
	if not ours(b) then return 0 end
	pinfo.cols.protocol = "weft"
	local kind = b(0, 1):uint() - 0xb0
	local names, packets = {}, 0
	repeat
		local size = kind == 5 and packet_size(b) or b:len()
		local p = b(0, size)
		local t = root:add(weft, p)
		t:add(f.type, p(0, 1))
		t:add(f.stripe, p(1, 1))
		if kind == 5 then
			data(t, p, names)
		elseif kind == 4 then
			t:add(f.source, p(3, 1))
			t:add_le(f.cid, p(4, 8))
			t:add_le(f.number, p(12, 4))
		else
			handshake(t, p, kind)
		end
		packets = packets + 1
		b = size < b:len() and b(size) or nil
	until not b
	local text = types[kind]
	local list = {}
	for name in pairs(names) do list[#list + 1] = name end
	table.sort(list)
	if packets > 1 then text = text .. " x" .. packets end
	if #list > 0 then text = text .. ": " .. table.concat(list, ", ") end
	pinfo.cols.info = text
	return tvb:len()
end

weft:register_heuristic("udp", function(tvb, pinfo, root)
	if not ours(tvb()) then return false end
	weft.dissector(tvb, pinfo, root)
	pinfo.conversation = weft
	return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(weft)
