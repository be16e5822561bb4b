// Structures and pairs at each lane's place, loaded together; some end beyond the buffer, some lanes are inactive.
// bind 0.0: u32 7,60,113,166,219,21,74,127,180,233,35,88,141,194,247,49,102,155,208,10,63,116,169,222,24,77,130,183,236,38,91,144,197,250,52,105,158,211,13,66,119,172,225,27,80,133,186,239,41,94,147,200,2,55,108,161,214,16,69,122,175,228,30,83,136,189,242,44,97,150,203,5,58,111,164,217,19,72,125,178,231,33,86,139,192,245,47,100,153,206,8,61,114,167,220,22,75,128,181,234,36,89,142,195,248,50,103,156,209,11,64,117,170,223,25,78,131,184,237,39,92,145,198,0,53,106,159,212,14,67,120,173,226,28,81,134,187,240,42,95,148,201,3,56,109,162,215,17,70,123,176,229,31,84,137,190,243,45,98,151,204,6,59
// bind 0.1: u32 3,32,61,90,119,148,177,7,36,65,94,123,152,181,11,40,69,98,127,156,185,15,44,73,102,131,160,189,19,48,77,106,135
// bind 0.2: zeros 160
// groups: 1
// expect 0.2: u32 0,2631,3318,0,3820,2972,0,5961,5136,0,1338,5183,0,3539,3975,0,2582,3747,0,397,3041,0,3292,2444,0,5433,2017,0,3917,4404,0,4266,4451,0,4313,3243,0,3105,3015,0
struct Record { a: vec3<u32>, b: u32, c: vec2<u32> }
@group(0) @binding(0) var<storage, read> records: array<Record>;
@group(0) @binding(1) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(40)
fn main(@builtin(local_invocation_index) i: u32) {
    if i % 3u != 0u {
        let record = records[(i * 13u + 5u) % 23u];
        let pair = pairs[i * 7u % 18u];
        let first = record.a.x + 2u * record.a.y + 3u * record.a.z + 4u * record.b;
        result[i] = first + 5u * record.c.x + 6u * record.c.y + 7u * pair.x + 8u * pair.y;
    }
}
